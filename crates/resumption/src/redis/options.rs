//! Address of a Redis, and connection options.

use quadrille_config::model::RedisAddress;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Credentials and trusted certificate authorities.
#[derive(Clone, Default)]
pub struct RedisOptions {
    /// Password that replaces the address's.
    pub password: Option<Zeroizing<String>>,
    /// CA bundle (PEM) for `rediss://`; the system's if `None`.
    pub ca: Option<PathBuf>,
}

pub(super) struct Shared {
    /// Distinguishes the connections of different handles on the same thread.
    pub(super) id: u64,
    pub(super) address: RedisAddress,
    pub(super) options: RedisOptions,
}
