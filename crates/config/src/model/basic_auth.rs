//! HTTP Basic authentication (RFC 7617).

use super::{Place, Rate, RouteSetting, Source};
use http::HeaderName;

/// HTTP Basic authentication: the users, and the headers that are forwarded to servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BasicAuth {
    /// Lines of a name, a colon and the hash of a password.
    pub users: Source,
    /// The place of the users in the configuration.
    pub users_place: Place,
    /// The accepted hashes.
    pub hashes: PasswordHashes,
    /// The realm, which browsers show, and by which they select a stored password.
    pub realm: String,
    /// Whether the client's `Authorization` header is forwarded to servers.
    pub forwards: bool,
    /// The header that carries the user's name to servers. A value from the client is removed.
    pub user_header: Option<HeaderName>,
    /// Maximum rate of wrong passwords of a network of clients; `None` for no limit.
    pub guesses: Option<Rate>,
}

/// The accepted hashes of passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PasswordHashes {
    /// Hashes that are slow to compute.
    Slow,
    /// SHA-1 without a salt, as in Envoy.
    Sha1,
}

/// The Basic authentication of a route.
pub type RouteBasicAuth = RouteSetting<BasicAuth>;

impl BasicAuth {
    /// The default realm.
    pub const REALM: &str = "Restricted";

    /// Returns the default rate of wrong passwords.
    pub fn guesses() -> Rate {
        Rate::per_minute(30)
    }
}
