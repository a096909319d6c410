//! What happens to a request on its way: routed, answered or sent upstream, retried, recorded.

use super::{
    HttpConnection, deadline, forwarded_headers, header_changes,
    request::{Request, host, incoming, normalize, plain},
    retry::{self, Failure},
    router::{MatchedRoute, RouteLookup},
};
use crate::telemetry::{access_log, metrics};
use async_trait::async_trait;
use http::Version;
use pingora_core::{
    server::{ShutdownWatch, configuration::ServerConf},
    upstreams::peer::HttpPeer,
};
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, HttpProxy, ProxyHttp, Session};
use quadrille_config::model::{Action, PathMatch, Redirect};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// The gateway's part in pingora's request cycle.
pub(crate) struct Proxy {
    shutdown: ShutdownWatch,
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
        Request::new()
    }

    /// Responses pass as they are: no compression module, no cache.
    fn init_downstream_modules(&self, _: &mut pingora_core::modules::http::HttpModules) {}

    async fn request_filter(&self, session: &mut Session, request: &mut Request) -> Result<bool> {
        request.began = Instant::now();
        let connection = connection_of(session).ok_or_else(|| Error::new(ErrorType::InternalError))?;
        connection.header_clock.stop();
        request.early = connection.early.load(Ordering::Relaxed);
        request.connection = Some(connection.clone());
        if connection.chain.is_removed() {
            session.set_keepalive(None);
        }
        let header = session.req_header();
        if request.early && (!header.method.is_safe() || session.is_upgrade_req()) {
            let late = plain(425, "Too early; send it again once the handshake is complete.\n");
            return request.answer(session, &late).await;
        }
        // Without a host, only routes for every host are left.
        if host(header).is_none() && header.version >= Version::HTTP_11 {
            return request.answer(session, &plain(400, "The request names no host.\n")).await;
        }
        let Some(settings) = connection.chain.http() else {
            return Error::e_explain(ErrorType::InternalError, "the chain serves no HTTP any more");
        };
        if settings.normalize_path || settings.merge_slashes {
            normalize(session.req_header_mut(), settings.normalize_path, settings.merge_slashes)?;
        }
        match settings.router.find(&incoming(session.req_header(), connection.tls)) {
            None => request.answer(session, &plain(404, "No route for this host and path.\n")).await,
            Some(RouteLookup::NeedsTls) => {
                request.redirect(session, &Redirect::https(), &PathMatch::any()).await
            }
            Some(RouteLookup::Route(matched)) => {
                request.route = Some(matched.clone());
                match &matched.route().action {
                    Action::Respond(respond) => request.answer(session, respond).await,
                    Action::Redirect(redirect) => {
                        request.redirect(session, redirect, &matched.route().path).await
                    }
                    Action::Forward(_) => request.forward(session, &matched).await,
                }
            }
        }
    }

    async fn upstream_peer(&self, session: &mut Session, request: &mut Request) -> Result<Box<HttpPeer>> {
        let (Some((upstream, ..)), Some(connection)) = (&request.upstream, &request.connection) else {
            return Error::e_explain(ErrorType::InternalError, "no upstream was chosen");
        };
        if request.retry().is_some() && !request.tried.is_empty() {
            tokio::time::sleep(retry::backoff(request.tried.len())).await;
        }
        let Some(server) = upstream.pick(connection.client, &request.tried) else {
            upstream.counters.no_server.add();
            return Error::e_explain(ErrorType::HTTPStatus(503), "no healthy server");
        };
        if !request.tried.is_empty() {
            upstream.counters.retries.add();
        }
        let mut peer = upstream.peer(&server, connection, session.is_upgrade_req());
        if !session.is_upgrade_req() {
            request.limit(&mut peer)?;
        }
        request.tried.push(server.address);
        request.server = Some(server);
        Ok(peer)
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
        forwarded_headers::set(connection, host(session.req_header()), upstream_request)?;
        let Some(matched) = &request.route else { return Ok(()) };
        request.rewrite(session.req_header(), upstream_request)?;
        let weighted = request.weighted().map(|weighted| &weighted.request_headers[..]).unwrap_or_default();
        let own = &matched.route().request_headers;
        if weighted.is_empty() && own.is_empty() {
            return Ok(());
        }
        let values = request.values(session, connection);
        header_changes::apply(upstream_request, weighted, &values)?;
        header_changes::apply(upstream_request, own, &values)
    }

    /// An answer that is to be tried again is thrown away here.
    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        answer: &mut ResponseHeader,
        request: &mut Request,
    ) -> Result<()> {
        let status = answer.status.as_u16();
        if status >= 200 && request.wants_retry(session, Failure::Status(status)) {
            return Error::e_explain(
                ErrorType::CustomCode(retry::RETRY, status),
                "its status is to be tried again",
            );
        }
        Ok(())
    }

    fn fail_to_connect(
        &self,
        session: &mut Session,
        _: &HttpPeer,
        request: &mut Request,
        mut error: Box<Error>,
    ) -> Box<Error> {
        if let Some((upstream, ..)) = &request.upstream {
            upstream.counters.connect_failures.add();
        }
        // Nothing has been sent yet, so any method may be tried again.
        let again = match request.retry() {
            Some(_) => request.wants_retry(session, Failure::Connect),
            None => request.may_retry(),
        };
        error.set_retry(again);
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
        if let (Some((upstream, ..)), ErrorType::ReadTimedout | ErrorType::WriteTimedout) =
            (&request.upstream, error.etype())
        {
            upstream.counters.timeouts.add();
        }
        if request.retry().is_some() {
            let failure = Failure::classify(&error);
            let begun = session.response_written().is_some();
            let again = !begun && failure.is_some_and(|failure| request.wants_retry(session, failure));
            error.set_retry(again);
            return error;
        }
        error.retry.decide_reuse(reused);
        let repeatable =
            session.req_header().method.is_idempotent() && !session.as_ref().retry_buffer_truncated();
        if !repeatable || !request.may_retry() {
            error.set_retry(false);
        }
        error
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        request: &mut Request,
    ) -> FailToProxy {
        let error_code = status_of(error, request.route.as_ref().map_or(502, MatchedRoute::unreachable));
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
        answer: &mut ResponseHeader,
        request: &mut Request,
    ) -> Result<()> {
        let Some(connection) = &request.connection else { return Ok(()) };
        // An answer that begins during a drain tells an HTTP/1 client that its connection takes no further request.
        if *self.shutdown.borrow() || connection.chain.is_removed() {
            session.set_keepalive(None);
        }
        let Some(matched) = &request.route else { return Ok(()) };
        let weighted = request.weighted().map(|weighted| &weighted.response_headers[..]).unwrap_or_default();
        let own = &matched.route().response_headers;
        if weighted.is_empty() && own.is_empty() || answer.status.is_informational() {
            return Ok(());
        }
        let values = request.values(session, connection);
        header_changes::apply(answer, weighted, &values)?;
        header_changes::apply(answer, own, &values)
    }

    fn suppress_error_log(&self, _: &Session, _: &Request, error: &Error) -> bool {
        // Clients that leave are not errors of ours.
        *error.esource() == ErrorSource::Downstream
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, request: &mut Request) {
        deadline::set(None);
        let status = session.response_written().map_or(0, |response| response.status.as_u16());
        metrics::request(status);
        if let Some((upstream, ..)) = &request.upstream {
            upstream.counters.responses.add(status);
        }
        let Some(connection) = &request.connection else { return };
        connection.chain.count_response(status);
        if access_log::enabled() {
            let header = session.req_header();
            access_log::Request {
                method: header.method.as_str(),
                host: host(header).unwrap_or_default(),
                path: header.uri.path(),
                protocol: if session.is_http2() { "HTTP/2" } else { "HTTP/1" },
                status,
                bytes: session.body_bytes_sent(),
                took: request.began.elapsed(),
                upstream: request.upstream.as_ref().map_or("-", |(upstream, ..)| upstream.name()),
                error: error.map(|error| error.etype().as_str()),
            }
            .write(connection);
        }
    }
}

/// What the client is told, where a server that cannot be reached is told by `unreachable`; `None` if the client is gone
/// (RFC 9110 section 15.6).
fn status_of(error: &Error, unreachable: u16) -> Option<u16> {
    use ErrorType::{
        ConnectTimedout, ConnectionClosed, CustomCode, HTTPStatus, ReadError, ReadTimedout,
        TLSHandshakeTimedout, WriteError, WriteTimedout,
    };
    match (error.esource(), error.etype()) {
        (_, HTTPStatus(status) | CustomCode(retry::RETRY, status)) => Some(*status),
        (ErrorSource::Upstream, ReadTimedout | WriteTimedout) => Some(504),
        (ErrorSource::Upstream, ConnectTimedout | TLSHandshakeTimedout) if unreachable != 503 => Some(504),
        (ErrorSource::Upstream, _) => Some(unreachable),
        (ErrorSource::Downstream, WriteError | ReadError | ConnectionClosed) => None,
        (ErrorSource::Downstream, _) => Some(400),
        (ErrorSource::Internal | ErrorSource::Unset, _) => Some(500),
    }
}

fn connection_of(session: &Session) -> Option<HttpConnection> {
    let data = session.digest()?.proxy_digest.as_ref()?.user_data.as_ref()?;
    data.downcast_ref::<HttpConnection>().cloned()
}
