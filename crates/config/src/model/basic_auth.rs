//! Users who say a password (RFC 7617).

use super::{Place, Rate, Source};
use http::HeaderName;
use std::sync::Arc;

/// Who is let in by name and password, and what of that goes on to servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BasicAuth {
    /// Lines of a name, a colon and the hash of a password.
    pub users: Source,
    /// Where they were written.
    pub users_place: Place,
    /// Which hashes may be among them.
    pub hashes: PasswordHashes,
    /// What browsers show, and by which they know whether a password is for this.
    pub realm: String,
    /// Servers see the name and the password that the client has sent.
    pub forwards: bool,
    /// Servers see the name here. What clients say of it is removed.
    pub user_header: Option<HeaderName>,
    /// How many wrong passwords a network of clients may say in a time; `None` sets no limit.
    pub guesses: Option<Rate>,
}

/// Which hashes of passwords are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PasswordHashes {
    /// Those that are slow to compute.
    Slow,
    /// SHA-1 without a salt, as in Envoy.
    Sha1,
}

/// What a route says of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RouteBasicAuth {
    /// What its chain says.
    #[default]
    OfChain,
    /// Everybody is let in.
    Off,
    /// These, in the place of the chain's.
    InPlace(Arc<BasicAuth>),
}

impl BasicAuth {
    /// What browsers show if nothing is said.
    pub const REALM: &str = "Restricted";

    /// Wrong passwords in a time if nothing is said.
    pub fn guesses() -> Rate {
        Rate::per_minute(30)
    }
}
