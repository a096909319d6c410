//! Who a request says that it is from, by JSON Web Tokens (RFC 7519), as Envoy's filter has it.

use super::{HeaderMatch, PathMatch, Place, QueryMatch, Source};
use http::HeaderName;
use std::time::Duration;

/// Which requests need which tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtAuthentication {
    /// Who issues tokens.
    pub providers: Vec<JwtProvider>,
    /// The first that is for a request decides about it; a request that none is for needs no token.
    pub rules: Vec<JwtRule>,
    /// Preflight requests of the CORS protocol need no token.
    pub bypass_preflights: bool,
    /// Clients are not told what is wrong with a token.
    pub strip_failure_response: bool,
    /// Where it was written.
    pub place: Place,
}

/// An issuer of tokens, with the keys that it signs them with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtProvider {
    /// For messages.
    pub name: String,
    /// What `iss` of its tokens must be; empty for anything.
    pub issuer: String,
    /// One of these must be among `aud` of its tokens; empty for anything.
    pub audiences: Vec<String>,
    /// A set of public keys (RFC 7517).
    pub keys: JwtKeys,
    /// Where its tokens are looked for. At least one.
    pub locations: Vec<JwtLocation>,
    /// The server gets the token as well.
    pub forward: bool,
    /// The header that tells the server the token's payload in base64url, and whether it is padded.
    pub payload_header: Option<(HeaderName, bool)>,
    /// Headers that tell the server a claim each. What clients say there is taken out.
    pub claim_headers: Vec<(HeaderName, JwtClaim)>,
    /// The name under which conditions find the payload; empty for none.
    pub payload_metadata: String,
    /// The name under which conditions find the token's header; empty for none.
    pub header_metadata: String,
    /// Claims that conditions see as a list of the words that they are.
    pub space_delimited: Vec<String>,
    /// By how much clocks may differ.
    pub leeway: Duration,
    /// Where it was written.
    pub place: Place,
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwtKeys {
    /// They are at hand.
    Local(Source),
    /// They are fetched once a token needs them.
    Remote(RemoteKeys),
}

/// Keys that are fetched by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteKeys {
    /// Whose servers have them.
    pub upstream: String,
    /// What the servers are asked for: an absolute URI.
    pub uri: http::Uri,
    /// How long a fetch may take.
    pub timeout: Duration,
    /// For how long they are used before they are fetched again.
    pub lifetime: Duration,
    /// How long after a fetch that failed the next one begins, at the earliest.
    pub retry_after: Duration,
    /// Those that are known are used for as long as no others can be fetched.
    pub outlive: bool,
}

/// The way to a claim: its name, or those of the objects that it is in.
pub type JwtClaim = Vec<String>;

/// Where a token may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JwtLocation {
    /// In a header (its name in small letters), behind this text.
    Header(String, String),
    /// In this parameter of the query.
    Parameter(String),
    /// In this cookie.
    Cookie(String),
}

/// What requests of one kind need.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JwtRule {
    /// For which paths.
    pub path: PathMatch,
    /// All of these hold.
    pub headers: Vec<HeaderMatch>,
    /// All of these hold.
    pub query: Vec<QueryMatch>,
    /// What is needed; `None` needs no token.
    pub requirement: Option<JwtRequirement>,
}

/// What is needed of a request's tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwtRequirement {
    /// A token of this provider, by its place among them; for these audiences in the place of the provider's, unless
    /// there are none.
    Provider(usize, Vec<String>),
    /// One of these.
    Any(Vec<JwtRequirement>),
    /// All of these.
    All(Vec<JwtRequirement>),
    /// Every token that is there must be good, of whichever provider it is.
    AllowMissing,
    /// Whatever is there.
    AllowMissingOrFailed,
}

impl JwtKeys {
    /// Keys that are at hand.
    pub fn local(&self) -> Option<&Source> {
        match self {
            Self::Local(source) => Some(source),
            Self::Remote(_) => None,
        }
    }

    /// Keys that are fetched.
    pub fn remote(&self) -> Option<&RemoteKeys> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(remote),
        }
    }
}

impl JwtProvider {
    /// Where tokens are looked for if nothing is said (RFC 6750 sections 2.1 and 2.3).
    pub fn default_locations() -> Vec<JwtLocation> {
        vec![
            JwtLocation::Header("authorization".into(), "Bearer ".into()),
            JwtLocation::Parameter("access_token".into()),
        ]
    }
}
