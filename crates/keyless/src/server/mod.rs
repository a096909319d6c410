//! The key server's side: answers operations of clients whom it knows, through the engine, so that the operations of
//! all clients meet in the same batches.
//!
//! ```text
//!  listener ── handshake ── identity ── policy ──> connection ── share of the engine ──> engine
//!              (mutual TLS, or              (who may use      (ServerSession: no I/O;
//!               the kernel's word)           which key)        a flood waits in its own queue)
//! ```

mod admission;
mod audit;
mod clients;
mod completions;
mod connection;
mod generated;
mod generator;
mod handshake;
mod identity;
mod key_origin;
mod key_store;
mod keys;
mod metrics;
mod newcomers;
mod policy;
mod threads;

pub use identity::{Identity, Name};
pub use key_origin::Generated;
pub use keys::{KeyProblem, Keys, StoredKey};
pub use quadrille_config::model::key_server::{ClientPattern, Limits, Pattern, Policy, Rule};
pub use threads::Threads;

use crate::{Credentials, Trust, tls};
use arc_swap::ArcSwap;
use audit::Audit;
use boring::{error::ErrorStack, ssl::SslContext};
use clients::Clients;
use generator::Generator;
use key_store::KeyStore;
use quadrille_engine::{Engine, KeyType};
use std::{io, num::NonZeroUsize, path::Path, sync::Arc};

/// What all connections of a key server share. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    engine: Engine,
    keys: Arc<KeyStore>,
    generator: Generator,
    policy: ArcSwap<Policy>,
    tls: ArcSwap<Option<SslContext>>,
    clients: Clients,
    /// Refusals of clients whose identity is not established.
    unidentified: Audit,
}

impl Server {
    /// A server with nothing to serve yet. `compute_threads` is how many threads the engine has.
    pub fn new(engine: Engine, compute_threads: NonZeroUsize) -> Self {
        let window = window(&engine, compute_threads);
        let keys = Arc::new(KeyStore::new(engine.clone()));
        Self(Arc::new(Shared {
            engine,
            generator: Generator::new(&keys),
            keys,
            policy: ArcSwap::default(),
            tls: ArcSwap::from_pointee(None),
            clients: Clients::new(window),
            unidentified: Audit::new("(unknown)".to_owned()),
        }))
    }

    /// Serves the keys of this directory from now on, and tells of files that are not as they should be; operations under
    /// way end with the keys that they began with.
    ///
    /// # Errors
    /// If the directory cannot be read; then the keys stay as they are.
    pub fn load_keys(&self, directory: &Path) -> io::Result<Vec<KeyProblem>> {
        let mut problems = Vec::new();
        self.0.keys.change(|before| {
            let (keys, found) = Keys::load(directory, before)?;
            problems = found;
            Ok::<_, io::Error>(keys)
        })?;
        Ok(problems)
    }

    /// The keys that are served.
    pub fn keys(&self) -> Arc<Keys> {
        self.0.keys.load_full()
    }

    /// Goes by this policy from now on, for open connections too.
    pub fn set_policy(&self, policy: Policy) {
        self.0.policy.store(Arc::new(policy));
    }

    /// New connections see this certificate, and must show one of these CAs.
    ///
    /// # Errors
    /// If BoringSSL does not accept the certificate or the key.
    pub fn set_tls(&self, credentials: &Credentials, clients: &Trust) -> Result<(), ErrorStack> {
        self.0.tls.store(Arc::new(Some(tls::server(credentials, clients)?)));
        Ok(())
    }
}

/// How many operations are in the engine at the same time: some batches for each thread, so that threads find the next
/// one waiting; more would only be a queue in which a flood stands before everybody else.
fn window(engine: &Engine, compute_threads: NonZeroUsize) -> usize {
    const BATCHES: usize = 4;
    let width = engine.batching(KeyType::Rsa { bits: 2048 }).width;
    BATCHES * width * compute_threads.get()
}
