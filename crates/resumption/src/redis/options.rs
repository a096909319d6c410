//! Where a Redis is, and how it is spoken to.

use quadrille_config::model::RedisAddress;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// How to identify oneself, and whom to trust.
#[derive(Clone, Default)]
pub struct RedisOptions {
    /// In place of the address's password.
    pub password: Option<Zeroizing<String>>,
    /// CA bundle (PEM) for `rediss://`; the system's without one.
    pub ca: Option<PathBuf>,
}

pub(super) struct Shared {
    /// Tells the connections of one from those of another on the same thread.
    pub(super) id: u64,
    pub(super) address: RedisAddress,
    pub(super) options: RedisOptions,
}
