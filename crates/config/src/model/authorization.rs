//! Servers that are asked who may ask for what, as Envoy's filter has it.

use super::{MetadataMatch, Place, TextMatch};
use http::{HeaderName, HeaderValue};
use std::time::Duration;

/// A server that is asked about requests before they are routed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authorization {
    /// The upstream whose servers are asked.
    pub upstream: String,
    /// How it is asked.
    pub service: AuthorizationService,
    /// How long it may take.
    pub timeout: Duration,
    /// What it is told of the request's body; `None` is nothing.
    pub body: Option<AuthorizationBody>,
    /// Whoever cannot be asked about is let in; otherwise answered with `status_on_error`.
    pub fail_open: bool,
    /// The server of a request that was let in so is told.
    pub tell_fail_open: bool,
    /// For requests about which nobody could be asked.
    pub status_on_error: u16,
    /// Asked only about these requests.
    pub only_if: Option<MetadataMatch>,
    /// Headers of the request that it is told; none said means all of them by gRPC, and `authorization` by HTTP.
    pub allowed_headers: Vec<TextMatch>,
    /// Headers of the request that it is not told.
    pub disallowed_headers: Vec<TextMatch>,
    /// Where it was written.
    pub place: Place,
}

/// What an authorization server is told of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationBody {
    /// So many bytes, at most.
    pub most: usize,
    /// Of a longer one the beginning, and that there is more; otherwise it is answered with 413.
    pub partial: bool,
    /// By gRPC, as bytes in place of text.
    pub as_bytes: bool,
}

/// How an authorization server is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuthorizationService {
    /// By `envoy.service.auth.v3.Authorization`, under this authority.
    Grpc(String),
    /// By the request itself, without its body unless that is told.
    Http(HttpAuthorization),
}

/// An authorization server that is asked by HTTP: 200 lets a request in, 5xx is an error, anything else is the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpAuthorization {
    /// In front of the request's path.
    pub path_prefix: String,
    /// Added to what it is asked.
    pub add_headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers of its answer that take the place of those of the request.
    pub upstream_headers: Vec<TextMatch>,
    /// Headers of its answer that are added to those of the request.
    pub upstream_headers_to_append: Vec<TextMatch>,
    /// Headers of its answer that a client gets who is not let in; none said means all.
    pub client_headers: Vec<TextMatch>,
    /// Headers of its answer that a client gets who is let in.
    pub client_headers_on_success: Vec<TextMatch>,
}
