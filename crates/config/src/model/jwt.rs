//! Authentication by JSON Web Tokens (RFC 7519), as in Envoy's `jwt_authn` filter.

use super::{HeaderMatch, PathMatch, Place, QueryMatch, RouteSetting, Source};
use http::HeaderName;
use std::time::Duration;

/// The tokens that requests need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtAuthentication {
    /// The issuers of tokens.
    pub providers: Vec<JwtProvider>,
    /// Rules; the first that matches a request applies, and a request without a matching rule needs no token.
    pub rules: Vec<JwtRule>,
    /// Whether CORS preflight requests need no token.
    pub bypass_preflights: bool,
    /// Whether responses omit the reason why a token is invalid.
    pub strip_failure_response: bool,
    /// The place in the configuration.
    pub place: Place,
}

/// The tokens that requests of a route need.
pub type RouteJwt = RouteSetting<JwtAuthentication>;

/// An issuer of tokens, with its signing keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtProvider {
    /// The name, for messages.
    pub name: String,
    /// The required `iss` claim of its tokens; empty accepts any.
    pub issuer: String,
    /// The accepted values of the `aud` claim; empty accepts any.
    pub audiences: Vec<String>,
    /// A set of public keys (RFC 7517).
    pub keys: JwtKeys,
    /// The locations of its tokens in requests; at least one.
    pub locations: Vec<JwtLocation>,
    /// Whether the token is forwarded to the server.
    pub forward: bool,
    /// The header that carries the token's payload to the server in base64url, and whether it is padded.
    pub payload_header: Option<(HeaderName, bool)>,
    /// Headers that carry one claim each to the server. Values from clients are removed.
    pub claim_headers: Vec<(HeaderName, JwtClaim)>,
    /// The metadata name of the payload, for conditions; empty for none.
    pub payload_metadata: String,
    /// The metadata name of the token's header, for conditions; empty for none.
    pub header_metadata: String,
    /// Claims that conditions treat as a list of space-delimited words.
    pub space_delimited: Vec<String>,
    /// Maximum clock difference.
    pub leeway: Duration,
    /// The place in the configuration.
    pub place: Place,
}

/// The source of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwtKeys {
    /// A local source.
    Local(Source),
    /// A remote source, fetched when a token first needs it.
    Remote(RemoteKeys),
}

/// Keys that are fetched by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteKeys {
    /// The upstream of the servers.
    pub upstream: String,
    /// The absolute URI of the keys.
    pub uri: http::Uri,
    /// Time limit of a fetch.
    pub timeout: Duration,
    /// Time for which keys are used before they are fetched again.
    pub lifetime: Duration,
    /// Minimum time between a failed fetch and the next one.
    pub retry_after: Duration,
    /// Whether known keys remain in use while fetches fail.
    pub outlive: bool,
}

/// The path of a claim: the names of the enclosing objects and of the claim.
pub type JwtClaim = Vec<String>;

/// A location of a token in a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JwtLocation {
    /// A header (name in lower case), with this prefix before the token.
    Header(String, String),
    /// A parameter of the query.
    Parameter(String),
    /// A cookie.
    Cookie(String),
}

/// A rule: the requirement for matching requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtRule {
    /// The condition on the path.
    pub path: PathMatch,
    /// Conditions on headers, all of which must hold.
    pub headers: Vec<HeaderMatch>,
    /// Conditions on query parameters, all of which must hold.
    pub query: Vec<QueryMatch>,
    /// The requirement; `None` needs no token.
    pub requirement: Option<JwtRequirement>,
}

/// A requirement on a request's tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwtRequirement {
    /// A token of this provider, by index; for these audiences instead of the provider's, unless they are empty.
    Provider(usize, Vec<String>),
    /// One of these.
    Any(Vec<JwtRequirement>),
    /// All of these.
    All(Vec<JwtRequirement>),
    /// No token, or valid tokens of any provider.
    AllowMissing,
    /// No requirement: missing and invalid tokens are accepted.
    AllowMissingOrFailed,
}

impl JwtKeys {
    /// Returns the local source, if it is one.
    pub fn local(&self) -> Option<&Source> {
        match self {
            Self::Local(source) => Some(source),
            Self::Remote(_) => None,
        }
    }

    /// Returns the remote source, if it is one.
    pub fn remote(&self) -> Option<&RemoteKeys> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(remote),
        }
    }
}

impl JwtProvider {
    /// Returns the default locations of tokens (RFC 6750 sections 2.1 and 2.3).
    pub fn default_locations() -> Vec<JwtLocation> {
        vec![
            JwtLocation::Header("authorization".into(), "Bearer ".into()),
            JwtLocation::Parameter("access_token".into()),
        ]
    }
}
