//! What happens to a request on its way: routed, answered or sent upstream, retried, recorded.

use super::{forwarded, route::Destination};
use crate::{access_log, connection::Connection, metrics, model::Respond, upstream::Upstream};
use async_trait::async_trait;
use http::Version;
use pingora_core::{
    server::{ShutdownWatch, configuration::ServerConf},
    upstreams::peer::HttpPeer,
};
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, HttpProxy, ProxyHttp, Session};
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// The gateway's part in pingora's request cycle.
pub(crate) struct Proxy {
    shutdown: ShutdownWatch,
}

/// One request.
pub(crate) struct Request {
    began: Instant,
    connection: Option<Arc<Connection>>,
    upstream: Option<Arc<Upstream>>,
    /// It came before the handshake was complete (RFC 8470).
    early: bool,
    tried: Vec<SocketAddr>,
}

/// One worker's proxy, with its own pool of upstream connections.
pub(crate) fn new_proxy(pool: usize, shutdown: ShutdownWatch) -> Arc<HttpProxy<Proxy>> {
    let conf = ServerConf {
        threads: 1,
        upstream_keepalive_pool_size: pool,
        // Each upstream has its own limit, see `Request::may_retry`; this one only bounds them all.
        max_retries: 256,
        ..ServerConf::default()
    };
    let mut proxy = HttpProxy::new(Proxy { shutdown }, Arc::new(conf));
    proxy.handle_init_modules();
    Arc::new(proxy)
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = Request;

    fn new_ctx(&self) -> Request {
        Request { began: Instant::now(), connection: None, upstream: None, early: false, tried: Vec::new() }
    }

    /// Responses pass as they are: no compression module, no cache.
    fn init_downstream_modules(&self, _: &mut pingora_core::modules::http::HttpModules) {}

    async fn request_filter(&self, session: &mut Session, request: &mut Request) -> Result<bool> {
        request.began = Instant::now();
        let connection = connection_of(session).ok_or_else(|| Error::new(ErrorType::InternalError))?;
        connection.header_clock.stop();
        request.early = connection.early.load(Ordering::Relaxed);
        let site = connection.listening.site();
        request.connection = Some(connection);
        let header = session.req_header();
        if request.early && (!header.method.is_safe() || session.is_upgrade_req()) {
            return answer(
                session,
                &plain(425, "Too early; send it again once the handshake is complete.\n"),
            )
            .await;
        }
        let host = match host(header) {
            Some(host) => host,
            // Only routes for every host are left.
            None if header.version < Version::HTTP_11 => "",
            None => return answer(session, &plain(400, "The request names no host.\n")).await,
        };
        match site.routes.find(without_port(host), header.uri.path()) {
            Some(Destination::Respond(respond)) => {
                let respond = Arc::clone(respond);
                answer(session, &respond).await
            }
            Some(Destination::Upstream(upstream)) => {
                request.upstream = Some(Arc::clone(upstream));
                Ok(false)
            }
            None => answer(session, &plain(404, "No route for this host and path.\n")).await,
        }
    }

    async fn upstream_peer(&self, session: &mut Session, request: &mut Request) -> Result<Box<HttpPeer>> {
        let (Some(upstream), Some(connection)) = (&request.upstream, &request.connection) else {
            return Error::e_explain(ErrorType::InternalError, "no upstream was chosen");
        };
        match upstream.pick(connection.client, &request.tried) {
            Some(server) => {
                request.tried.push(server.address);
                Ok(upstream.peer(&server, connection, session.is_upgrade_req()))
            }
            None => Error::e_explain(ErrorType::HTTPStatus(503), "no healthy server"),
        }
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        request: &mut Request,
    ) -> Result<()> {
        let Some(connection) = &request.connection else { return Ok(()) };
        if request.early {
            upstream_request.insert_header("Early-Data", "1")?;
        }
        forwarded::announce(connection, host(session.req_header()), upstream_request)
    }

    fn fail_to_connect(
        &self,
        _: &mut Session,
        _: &HttpPeer,
        request: &mut Request,
        mut error: Box<Error>,
    ) -> Box<Error> {
        // Nothing has been sent yet, so any method may be tried again.
        error.set_retry(request.may_retry());
        error
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        request: &mut Request,
        reused: bool,
    ) -> Box<Error> {
        let mut error = error.more_context(format!("server {peer}"));
        error.retry.decide_reuse(reused);
        let repeatable =
            session.req_header().method.is_idempotent() && !session.as_ref().retry_buffer_truncated();
        if !repeatable || !request.may_retry() {
            error.set_retry(false);
        }
        error
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, _: &mut Request) -> FailToProxy {
        let error_code = status_of(error);
        if let Some(status) = error_code
            && let Err(error) = session.respond_error(status).await
        {
            tracing::debug!(%error, "the client did not take the error");
        }
        FailToProxy { error_code: error_code.unwrap_or(0), can_reuse_downstream: false }
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        _: &mut ResponseHeader,
        _: &mut Request,
    ) -> Result<()> {
        // An answer that begins during a drain tells an HTTP/1 client that its connection takes no further request.
        if *self.shutdown.borrow() {
            session.set_keepalive(None);
        }
        Ok(())
    }

    fn suppress_error_log(&self, _: &Session, _: &Request, error: &Error) -> bool {
        // Clients that leave are not errors of ours.
        *error.esource() == ErrorSource::Downstream
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, request: &mut Request) {
        let status = session.response_written().map_or(0, |response| response.status.as_u16());
        metrics::request(status);
        if let (true, Some(connection)) = (access_log::enabled(), &request.connection) {
            let header = session.req_header();
            access_log::Request {
                method: header.method.as_str(),
                host: host(header).unwrap_or_default(),
                path: header.uri.path(),
                protocol: if session.is_http2() { "HTTP/2" } else { "HTTP/1" },
                status,
                bytes: session.body_bytes_sent(),
                took: request.began.elapsed(),
                upstream: request.upstream.as_ref().map_or("-", |upstream| upstream.name()),
                error: error.map(|error| error.etype().as_str()),
            }
            .write(connection);
        }
    }
}

impl Request {
    fn may_retry(&self) -> bool {
        self.tried.len() <= self.upstream.as_ref().map_or(0, |upstream| upstream.retries())
    }
}

/// What the client is told; `None` if it is gone (RFC 9110 section 15.6).
fn status_of(error: &Error) -> Option<u16> {
    use ErrorType::{
        ConnectTimedout, ConnectionClosed, HTTPStatus, ReadError, ReadTimedout, TLSHandshakeTimedout,
        WriteError, WriteTimedout,
    };
    match (error.esource(), error.etype()) {
        (_, HTTPStatus(status)) => Some(*status),
        (ErrorSource::Upstream, ConnectTimedout | TLSHandshakeTimedout | ReadTimedout | WriteTimedout) => {
            Some(504)
        }
        (ErrorSource::Upstream, _) => Some(502),
        (ErrorSource::Downstream, WriteError | ReadError | ConnectionClosed) => None,
        (ErrorSource::Downstream, _) => Some(400),
        (ErrorSource::Internal | ErrorSource::Unset, _) => Some(500),
    }
}

fn connection_of(session: &Session) -> Option<Arc<Connection>> {
    let data = session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?;
    data.downcast_ref::<Arc<Connection>>().cloned()
}

/// The authority of HTTP/2, or the Host header of HTTP/1.
fn host(header: &RequestHeader) -> Option<&str> {
    match header.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => header.headers.get(http::header::HOST)?.to_str().ok(),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn plain(status: u16, body: &'static str) -> Respond {
    Respond { status, ..Respond::text(body) }
}

async fn answer(session: &mut Session, respond: &Respond) -> Result<bool> {
    let mut header = ResponseHeader::build(respond.status, Some(3))?;
    header.insert_header(http::header::CONTENT_TYPE, &respond.content_type)?;
    header.insert_header(http::header::CONTENT_LENGTH, respond.body.len())?;
    let empty = respond.body.is_empty() || session.req_header().method == http::Method::HEAD;
    session.write_response_header(Box::new(header), empty).await?;
    if !empty {
        session.write_response_body(Some(respond.body.clone()), true).await?;
    }
    Ok(true)
}
