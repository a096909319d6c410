//! HTTP settings of the filter chain that a connection came through.

use super::{ErrorPages, OwnHeaders, Router, filter::step::Step};
use crate::{connection::Connection, traces::Tracer, upstream::ConnectionPool};
use http::HeaderValue;
use quadrille_acme::Answers;
use quadrille_config::model::{
    AccessStep, AltSvc, EnvoyHeaders, ForwardedCertificate, HeaderChange, LocalReplies, Paths, RequestIds,
    RequestLimits, StripPort, TrustedProxies, Upgrades,
};
use std::{num::NonZeroUsize, sync::Arc};
use tokio::sync::Notify;

/// A filter chain as seen by the requests of its connections. While a connection is open, a reload may change or
/// remove what the chain serves.
pub(crate) trait HttpFilterChain: Send + Sync {
    /// Returns the current HTTP settings; `None` if the chain no longer serves HTTP.
    fn http(&self) -> Option<Arc<HttpSettings>>;

    /// Returns whether the connection may serve this host: no other chain has the host, or the other chain protects
    /// its connections alike, and has the same access rules, limits and routes. Envoy compares only the former. Always
    /// false once the chain's client certificate settings differ from those under which the connection was accepted.
    /// `sni` is the name in the ClientHello.
    fn may_serve(&self, host: &str, sni: Option<&str>) -> bool;

    /// Returns whether connections for this host, or new ones of the chain, request client certificates.
    fn asks_for_certificates(&self, host: &str) -> bool;

    /// Returns whether the connection is to close when it can, because the chain was removed from the configuration,
    /// its client certificate settings changed since the connection was accepted, or the process drains.
    fn is_removed(&self) -> bool;

    /// Notified when `is_removed` may have become true.
    fn removal(&self) -> &Notify;

    /// Counts a request under its response status; 0 means no response.
    fn count_response(&self, status: u16);
}

/// HTTP settings of a filter chain.
pub(crate) struct HttpSettings {
    pub(crate) router: Arc<Router>,
    /// Path normalization for matching and forwarding.
    pub(crate) paths: Paths,
    /// Access steps, in order.
    pub(crate) access: Vec<Step>,
    /// The access steps as configured, by which chains are compared; `None` if chains are not compared, as in Envoy.
    pub(crate) compared_access: Option<Vec<AccessStep>>,
    /// Request headers that have the gateway's own value for all conditions.
    pub(crate) own_headers: OwnHeaders,
    /// Changes to responses that no route applies to, if there are any.
    pub(crate) response_headers: Option<Arc<[HeaderChange]>>,
    /// Error pages.
    pub(crate) error_pages: Option<Arc<ErrorPages>>,
    /// Error pages of routes that have their own, by host and route; empty if no route has any.
    pub(crate) route_pages: Vec<Vec<Option<Arc<ErrorPages>>>>,
    /// Rewriting of local responses, in place of error pages.
    pub(crate) local_replies: Option<Arc<LocalReplies>>,
    /// Limits on the size of requests.
    pub(crate) limits: RequestLimits,
    /// Proxies that are trusted to name their clients.
    pub(crate) trusted_proxies: TrustedProxies,
    /// Handling of `X-Request-Id`; without it, client values are passed on.
    pub(crate) request_ids: Option<RequestIds>,
    /// Handling of `X-Forwarded-Client-Cert`, where `X-Envoy-*` have a meaning.
    pub(crate) forwarded_certificate: ForwardedCertificate,
    /// Whether the port is stripped from the host.
    pub(crate) strip_port: StripPort,
    /// Protocols that requests may switch to, unless the route decides about them.
    pub(crate) upgrades: Arc<Upgrades>,
    /// Whether an HTTP/1.1 request is aborted when its client closes its side of the connection.
    pub(crate) abort_on_close: bool,
    /// Handling of `X-Envoy-*`; without it, they have no meaning.
    pub(crate) envoy_headers: Option<EnvoyHeaders>,
    /// Tracer that samples and exports requests.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Responses to HTTP-01 challenges, where they are served without TLS.
    pub(crate) answers: Option<Arc<Answers>>,
    /// Advertisement of HTTP/3, where it is available.
    pub(crate) alt_svc: Option<AltSvc>,
}

impl HttpSettings {
    /// Returns whether requests for hosts of other chains are rejected unless the chains apply the same rules.
    pub(crate) fn compares_chains(&self) -> bool {
        self.compared_access.is_some()
    }

    /// Returns whether a request would be subject to the same access rules, limits and routes. An Envoy configuration
    /// selects the routes by the connection, for any host.
    pub(crate) fn guards_the_same(&self, other: &Self) -> bool {
        match (&self.compared_access, &other.compared_access) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => {
                ours == theirs
                    && (&self.limits, self.paths) == (&other.limits, other.paths)
                    && self.trusted_proxies == other.trusted_proxies
                    && self.router.table() == other.router.table()
            }
            _ => false,
        }
    }

    /// Returns the `Alt-Svc` value for a client of HTTP/1.1 or HTTP/2 (RFC 7838). Without TLS, clients would ignore
    /// it.
    pub(super) fn alternative(&self, connection: &Connection) -> Option<HeaderValue> {
        match self.alt_svc.as_ref().filter(|_| connection.tls)? {
            AltSvc::SamePort => Some(connection.http3_here().clone()),
            AltSvc::Off => None,
            AltSvc::Value(value) => HeaderValue::from_str(value).ok(),
        }
    }
}

/// A connection that carries HTTP, with its filter chain and connection pool.
pub(crate) struct HttpConnection {
    pub(crate) connection: Arc<Connection>,
    pub(crate) chain: Arc<dyn HttpFilterChain>,
    /// Connection pool of the event loop.
    pub(crate) pool: Arc<ConnectionPool>,
}

impl HttpConnection {
    /// Returns the current limits on a request header: bytes, and fields. Requests to a chain that no longer serves
    /// HTTP are rejected in any case.
    pub(super) fn header_limits(&self) -> (usize, NonZeroUsize) {
        let settings = self.chain.http();
        settings.map_or((16 * 1024, RequestLimits::FIELDS), |settings| {
            (settings.limits.header, settings.limits.fields)
        })
    }
}
