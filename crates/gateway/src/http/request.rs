//! One request: its route, its upstream, its limits, and the answers that are our own.

use super::{
    HttpConnection, deadline,
    header_changes::{self, Variables},
    request_view::RequestView,
    retry::{self, Failure},
    rewrite,
    router::MatchedRoute,
};
use crate::{
    connection::Connection,
    upstream::{ActiveRequest, Server, Upstream},
};
use http::{HeaderValue, header};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;
use quadrille_config::model::{HostRewrite, PathMatch, Redirect, Respond, RetryPolicy, Weighted};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// One request.
pub(crate) struct Request {
    pub(super) began: Instant,
    pub(super) connection: Option<HttpConnection>,
    pub(super) route: Option<MatchedRoute>,
    /// Where it goes, and which of the route's weighted upstreams that is.
    pub(super) upstream: Option<(Arc<Upstream>, usize, ActiveRequest)>,
    /// It came before the handshake was complete (RFC 8470).
    pub(super) early: bool,
    pub(super) tried: Vec<SocketAddr>,
    /// The last of them.
    pub(super) server: Option<Server>,
}

impl Request {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            connection: None,
            route: None,
            upstream: None,
            early: false,
            tried: Vec::new(),
            server: None,
        }
    }

    /// Sends it upstream; true if it was answered instead.
    pub(super) async fn forward(&mut self, session: &mut Session, matched: &MatchedRoute) -> Result<bool> {
        let weighted = matched.pick_upstream();
        let Some((index, upstream)) =
            weighted.and_then(|weighted| Some((weighted.index, weighted.upstream.as_ref()?)))
        else {
            tracing::debug!(route = %matched.place(), "the route's upstream does not exist (yet)");
            return self.answer(session, &plain(503, "No such upstream.\n")).await;
        };
        self.upstream = Some((Arc::clone(upstream), index, upstream.begin()));
        let timeout = matched.forward().and_then(|forward| forward.timeout);
        deadline::set(timeout.filter(|_| !session.is_upgrade_req()).map(|timeout| self.began + timeout));
        Ok(false)
    }

    /// Which of the route's weighted upstreams the request goes to.
    pub(super) fn weighted(&self) -> Option<&Weighted> {
        self.route.as_ref()?.forward()?.to.get(self.upstream.as_ref()?.1)
    }

    pub(super) fn retry(&self) -> Option<&RetryPolicy> {
        self.route.as_ref()?.forward()?.retry.as_ref()
    }

    pub(super) fn may_retry(&self) -> bool {
        self.tried.len() <= self.upstream.as_ref().map_or(0, |(upstream, ..)| upstream.retries())
    }

    /// Whether the route's policy tries such a failure again.
    pub(super) fn wants_retry(&self, session: &Session, failure: Failure) -> bool {
        let Some(policy) = self.retry() else { return false };
        let idempotent = session.req_header().method.is_idempotent();
        self.tried.len() <= policy.retries as usize
            && !session.as_ref().retry_buffer_truncated()
            && !session.is_upgrade_req()
            && self.left().is_none_or(|left| !left.is_zero())
            && retry::is_allowed(policy, failure, idempotent)
    }

    /// Of the time for the whole.
    fn left(&self) -> Option<Duration> {
        let timeout = self.route.as_ref()?.forward()?.timeout?;
        Some(timeout.saturating_sub(self.began.elapsed()))
    }

    /// The route's limits, on top of the upstream's.
    pub(super) fn limit(&self, peer: &mut HttpPeer) -> Result<()> {
        let Some(forward) = self.route.as_ref().and_then(MatchedRoute::forward) else { return Ok(()) };
        let options = &mut peer.options;
        if let Some(idle) = forward.idle {
            (options.read_timeout, options.write_timeout) = (Some(idle), Some(idle));
        }
        let left = self.left();
        if left.is_some_and(|left| left.is_zero()) {
            return Error::e_explain(ErrorType::HTTPStatus(504), "the request has taken too long");
        }
        let per_try = forward.retry.as_ref().and_then(|policy| policy.per_try_timeout);
        let most = [left, per_try].into_iter().flatten().min();
        let shorten = |limit: &mut Option<Duration>| *limit = [*limit, most].into_iter().flatten().min();
        shorten(&mut options.read_timeout);
        shorten(&mut options.connection_timeout);
        shorten(&mut options.total_connection_timeout);
        Ok(())
    }

    /// What the server sees of path and host.
    pub(super) fn rewrite(&self, original: &RequestHeader, upstream: &mut RequestHeader) -> Result<()> {
        let Some(matched) = &self.route else { return Ok(()) };
        let Some(forward) = matched.forward() else { return Ok(()) };
        if let Some(rewrite) = &forward.rewrite {
            let path = rewrite::path(rewrite, &matched.route().path, original.uri.path());
            set_path(upstream, &path, original.uri.query())?;
        }
        let host = match &forward.host {
            None => return Ok(()),
            Some(HostRewrite::Literal(host)) => HeaderValue::from_str(host).ok(),
            Some(HostRewrite::Server) => {
                self.server.as_ref().and_then(|server| HeaderValue::from_str(&server.host).ok())
            }
            Some(HostRewrite::Header(name)) => original.headers.get(name).cloned(),
        };
        host.map_or(Ok(()), |host| upstream.insert_header(header::HOST, host))
    }

    pub(super) fn values<'a>(&'a self, session: &'a Session, connection: &'a Connection) -> Variables<'a> {
        Variables {
            connection,
            http2: session.is_http2(),
            upstream: self.upstream.as_ref().map_or("", |(upstream, ..)| upstream.name()),
            request: &session.req_header().headers,
        }
    }

    pub(super) async fn answer(&self, session: &mut Session, respond: &Respond) -> Result<bool> {
        let mut header = ResponseHeader::build(respond.status, Some(3))?;
        if !respond.body.is_empty() {
            header.insert_header(header::CONTENT_TYPE, &respond.content_type)?;
        }
        if !matches!(respond.status, 204 | 304) {
            header.insert_header(header::CONTENT_LENGTH, respond.body.len())?;
        }
        self.finish(session, header, respond.body.clone()).await
    }

    pub(super) async fn redirect(
        &self,
        session: &mut Session,
        redirect: &Redirect,
        matched: &PathMatch,
    ) -> Result<bool> {
        let tls = self.connection.as_ref().is_some_and(|connection| connection.tls);
        let location = rewrite::location(redirect, matched, &incoming(session.req_header(), tls));
        let mut header = ResponseHeader::build(redirect.status, Some(2))?;
        header.insert_header(header::LOCATION, location)?;
        header.insert_header(header::CONTENT_LENGTH, 0)?;
        self.finish(session, header, bytes::Bytes::new()).await
    }

    /// Sends an answer of our own.
    async fn finish(
        &self,
        session: &mut Session,
        mut header: ResponseHeader,
        body: bytes::Bytes,
    ) -> Result<bool> {
        if let (Some(matched), Some(connection)) = (&self.route, &self.connection) {
            let values = self.values(session, connection);
            header_changes::apply(&mut header, &matched.route().response_headers, &values)?;
        }
        let empty = body.is_empty() || session.req_header().method == http::Method::HEAD;
        session.write_response_header(Box::new(header), empty).await?;
        if !empty {
            session.write_response_body(Some(body), true).await?;
        }
        Ok(true)
    }
}

pub(super) fn incoming(header: &RequestHeader, tls: bool) -> RequestView<'_> {
    RequestView {
        authority: host(header).unwrap_or_default(),
        method: header.method.as_str(),
        path: header.uri.path(),
        query: header.uri.query(),
        headers: &header.headers,
        tls,
    }
}

/// The authority of HTTP/2, or the Host header of HTTP/1.
pub(super) fn host(header: &RequestHeader) -> Option<&str> {
    match header.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => header.headers.get(header::HOST)?.to_str().ok(),
    }
}

pub(super) fn normalize(header: &mut RequestHeader, dots: bool, slashes: bool) -> Result<()> {
    match rewrite::normalized(header.uri.path(), dots, slashes) {
        None => Ok(()),
        Some(path) => {
            let query = header.uri.query().map(str::to_owned);
            set_path(header, &path, query.as_deref())
        }
    }
}

/// The query stays, unless the path brings its own.
fn set_path(header: &mut RequestHeader, path: &str, query: Option<&str>) -> Result<()> {
    let root = if path.starts_with('/') { "" } else { "/" };
    let query = query.filter(|_| !path.contains('?')).map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = header.uri.clone().into_parts();
    let text = format!("{root}{path}{query}");
    let invalid = |_| Error::explain(ErrorType::HTTPStatus(400), "the rewritten path is none");
    parts.path_and_query = Some(text.parse().map_err(invalid)?);
    let uri = http::Uri::from_parts(parts);
    header
        .set_uri(uri.map_err(|_| Error::explain(ErrorType::HTTPStatus(400), "the rewritten path is none"))?);
    Ok(())
}

pub(super) fn plain(status: u16, body: &'static str) -> Respond {
    Respond { status, ..Respond::text(body) }
}
