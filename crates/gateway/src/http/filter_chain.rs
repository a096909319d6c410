//! What HTTP knows of the filter chain that a connection came through.

use super::{ErrorPages, Router, access_step::Step};
use crate::{connection::Connection, traces::Tracer, upstream::ConnectionPool};
use http::HeaderValue;
use quadrille_acme::Answers;
use quadrille_config::model::{
    AltSvc, EnvoyHeaders, ForwardedCertificate, LocalReplies, Paths, RequestIds, RequestLimits, StripPort,
    TrustedProxies,
};
use std::{num::NonZeroUsize, sync::Arc};
use tokio::sync::Notify;

/// A filter chain as the requests of its connections see it. While a connection is open, a reload may change what the
/// chain serves, or take it away.
pub(crate) trait HttpFilterChain: Send + Sync {
    /// What it serves now; `None` if that is no longer HTTP.
    fn http(&self) -> Option<Arc<HttpSettings>>;

    /// Whether the connection may have answers for this host: no other chain has it, or one that asks the same of clients
    /// and protects the connection in the same way. None, once its own chain asks clients for other certificates than
    /// when it accepted the connection.
    fn may_serve(&self, host: &str) -> bool;

    /// Whether the connection is to end when it can, because the configuration has the chain no longer, the chain asks
    /// other things of clients than it did when it accepted the connection, or the process drains.
    fn is_removed(&self) -> bool;

    /// Notified when that may have come true.
    fn removal(&self) -> &Notify;

    /// Counts a request with the status of its answer; 0 stands for none.
    fn count_response(&self, status: u16);
}

/// What a filter chain serves to HTTP clients.
pub(crate) struct HttpSettings {
    pub(crate) router: Arc<Router>,
    /// In which form paths are matched and sent on.
    pub(crate) paths: Paths,
    /// Who may ask for what.
    pub(crate) access: Vec<Step>,
    /// What clients read of errors.
    pub(crate) error_pages: Option<Arc<ErrorPages>>,
    /// The same on routes that have pages of their own, by host and route; empty without any.
    pub(crate) route_pages: Vec<Vec<Option<Arc<ErrorPages>>>>,
    /// How the gateway's own answers are written, in the place of pages.
    pub(crate) local_replies: Option<Arc<LocalReplies>>,
    /// How large requests may be.
    pub(crate) limits: RequestLimits,
    /// Whose word about the clients behind them is taken.
    pub(crate) trusted_proxies: TrustedProxies,
    /// What becomes of `X-Request-Id`; clients' own are passed on if nothing is said.
    pub(crate) request_ids: Option<RequestIds>,
    /// What becomes of `X-Forwarded-Client-Cert`, where `X-Envoy-*` mean something.
    pub(crate) forwarded_certificate: ForwardedCertificate,
    /// Whether requests lose the port of their host.
    pub(crate) strip_port: StripPort,
    /// Whether WebSockets go upstream, where a route says nothing of them.
    pub(crate) websocket: bool,
    /// What becomes of `X-Envoy-*`; they mean nothing if nothing is said.
    pub(crate) envoy_headers: Option<EnvoyHeaders>,
    /// Which requests are traced, and for whom, if any are.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// To those who validate names, where that is done without TLS.
    pub(crate) answers: Option<Arc<Answers>>,
    /// How clients hear of HTTP/3, where there is any.
    pub(crate) alt_svc: Option<AltSvc>,
}

impl HttpSettings {
    /// What a client of HTTP/1.1 or HTTP/2 is told of HTTP/3 (RFC 7838). Without TLS nobody would believe it.
    pub(super) fn alternative(&self, connection: &Connection) -> Option<HeaderValue> {
        match self.alt_svc.as_ref().filter(|_| connection.tls)? {
            AltSvc::SamePort => Some(connection.http3_here().clone()),
            AltSvc::Off => None,
            AltSvc::Value(value) => HeaderValue::from_str(value).ok(),
        }
    }
}

/// A connection over which HTTP is spoken: where it came from, and where its requests go.
pub(crate) struct HttpConnection {
    pub(crate) connection: Arc<Connection>,
    pub(crate) chain: Arc<dyn HttpFilterChain>,
    /// Of the event loop.
    pub(crate) pool: Arc<ConnectionPool>,
}

impl HttpConnection {
    /// How large a request's header may be, as the chain says at this moment: bytes, and fields. Requests to a chain that
    /// serves HTTP no longer are refused in any case.
    pub(super) fn header_limits(&self) -> (usize, NonZeroUsize) {
        let settings = self.chain.http();
        settings.map_or((16 * 1024, RequestLimits::FIELDS), |settings| {
            (settings.limits.header, settings.limits.fields)
        })
    }
}
