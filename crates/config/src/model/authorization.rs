//! External authorization, as in Envoy's `ext_authz` filter.

use super::{MetadataMatch, Place, RouteSetting, TextMatch};
use http::{HeaderName, HeaderValue};
use std::time::Duration;

/// An authorization server that is queried about requests before they are routed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authorization {
    /// The upstream of the authorization servers.
    pub upstream: String,
    /// The protocol.
    pub service: AuthorizationService,
    /// Time limit of a query.
    pub timeout: Duration,
    /// The part of the request's body that is sent; `None` sends none.
    pub body: Option<AuthorizationBody>,
    /// Whether requests are allowed if the query fails; otherwise they are rejected with `status_on_error`.
    pub fail_open: bool,
    /// Whether the upstream server is notified of a request that was allowed after a failed query.
    pub tell_fail_open: bool,
    /// Status of responses to requests whose query failed.
    pub status_on_error: u16,
    /// Condition on requests; others are not checked.
    pub only_if: Option<MetadataMatch>,
    /// Headers of the request that are sent; empty means all of them by gRPC, and `authorization` by HTTP.
    pub allowed_headers: Vec<TextMatch>,
    /// Headers of the request that are not sent.
    pub disallowed_headers: Vec<TextMatch>,
    /// The place in the configuration.
    pub place: Place,
}

/// The part of a request's body that is sent to an authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationBody {
    /// Maximum number of bytes.
    pub most: usize,
    /// Whether the beginning of a longer body is sent, marked as partial; otherwise the request is rejected with 413.
    pub partial: bool,
    /// Whether the body is sent as bytes instead of text (gRPC).
    pub as_bytes: bool,
}

/// The protocol of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuthorizationService {
    /// gRPC: `envoy.service.auth.v3.Authorization`, with this authority.
    Grpc(String),
    /// HTTP: the request itself, without its body unless `body` is set.
    Http(HttpAuthorization),
}

/// An authorization server that is queried by HTTP: status 200 (with `forward_auth`, any 2xx) allows the request, 5xx is
/// an error, and any other response is sent to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpAuthorization {
    /// Prefix that is added to the request's path.
    pub path_prefix: String,
    /// Headers that are added to the query.
    pub add_headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers of its response that replace those of the request.
    pub upstream_headers: Vec<TextMatch>,
    /// Headers of its response that are added to those of the request.
    pub upstream_headers_to_append: Vec<TextMatch>,
    /// Headers of its response that are sent to the client if the request is denied; empty means all.
    pub client_headers: Vec<TextMatch>,
    /// Headers of its response that are sent to the client if the request is allowed.
    pub client_headers_on_success: Vec<TextMatch>,
    /// The form of the query, in place of the request with `path_prefix`.
    pub forward_auth: Option<ForwardAuth>,
}

/// A query for a fixed path, by GET, with the request line in headers: forward authentication, as in Traefik and Caddy,
/// and `auth_request` of nginx.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForwardAuth {
    /// The path, which may have a query.
    pub path: String,
    /// Headers of its response that replace those of the request. Values from clients are removed.
    pub copied: Vec<HeaderName>,
}

/// The authorization server of a route.
pub type RouteAuthorization = RouteSetting<Authorization>;

impl Authorization {
    /// Returns the headers of its responses that replace those of requests.
    pub fn copied(&self) -> &[HeaderName] {
        match &self.service {
            AuthorizationService::Http(HttpAuthorization { forward_auth: Some(forward), .. }) => {
                &forward.copied
            }
            AuthorizationService::Http(_) | AuthorizationService::Grpc(_) => &[],
        }
    }
}
