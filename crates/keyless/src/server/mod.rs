//! Key server: computes the operations of known clients through the engine, which batches the operations of all
//! clients together.
//!
//! ```text
//!  listener ── handshake ── identity ── policy ──> connection ── share of the engine ──> engine
//!              (mutual TLS, or              (access to        (ServerSession: no I/O;
//!               the kernel's word)           keys)             a flood waits in its own queue)
//! ```
//!
//! - `newcomers`, `handshake`, `client_trust`, `identity`, `policy`: from a socket to a client with permissions.
//! - `connection`, `close_reason`, `completions`, `admission`: requests of a client within its limits; `admission` is pure.
//! - `keys`, `key_store`: the served keys; `token_file`: files of keys in PKCS#11 tokens; `generator`, `generated`, `key_origin`: keys that clients generate.
//! - `audit`, `metrics`: rejected operations, counts.

mod admission;
mod audit;
mod client_trust;
mod clients;
mod close_reason;
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
mod token_file;

pub use identity::{Identity, Name};
pub use key_origin::Generated;
pub use keys::{KeyProblem, Keys, StoredKey};
pub use quadrille_config::model::key_server::{ClientPattern, Limits, Pattern, Policy, Rule};
pub use threads::Threads;

use crate::{
    Credentials,
    tls::{self, ClientTrust},
};
use arc_swap::ArcSwap;
use audit::Audit;
use boring::{error::ErrorStack, ssl::SslContext};
use client_trust::VerifiedClients;
use clients::Clients;
use generator::Generator;
use key_store::KeyStore;
use quadrille_engine::{Engine, KeyType};
use std::{io, num::NonZeroUsize, path::Path, sync::Arc};
use tokio::sync::watch;

/// State shared by all connections of a key server. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    engine: Engine,
    keys: Arc<KeyStore>,
    generator: Generator,
    policy: ArcSwap<Policy>,
    tls: ArcSwap<Option<ServerTls>>,
    /// Notified when the policy or the TLS settings have changed.
    changes: watch::Sender<()>,
    clients: Clients,
    /// Refusals of unidentified clients.
    unidentified: Audit,
}

/// TLS settings of new connections.
struct ServerTls {
    context: SslContext,
    clients: Arc<VerifiedClients>,
}

impl Server {
    /// Creates a server without keys. `compute_threads` is the number of threads of the engine.
    pub fn new(engine: Engine, compute_threads: NonZeroUsize) -> Self {
        let window = window(&engine, compute_threads);
        let keys = Arc::new(KeyStore::new(engine.clone()));
        Self(Arc::new(Shared {
            engine,
            generator: Generator::new(&keys),
            keys,
            policy: ArcSwap::default(),
            tls: ArcSwap::from_pointee(None),
            changes: watch::Sender::new(()),
            clients: Clients::new(window),
            unidentified: Audit::new("(unknown)".to_owned()),
        }))
    }

    /// Loads and serves the keys of this directory, and returns problems with files; operations in progress finish
    /// with the previous keys.
    ///
    /// # Errors
    /// If the directory cannot be read; the keys then remain unchanged.
    pub fn load_keys(&self, directory: &Path) -> io::Result<Vec<KeyProblem>> {
        let mut problems = Vec::new();
        self.0.keys.change(|before| {
            let (keys, found) = Keys::load(directory, before)?;
            problems = found;
            Ok::<_, io::Error>(keys)
        })?;
        Ok(problems)
    }

    /// Served keys.
    pub fn keys(&self) -> Arc<Keys> {
        self.0.keys.load_full()
    }

    /// Sets the policy, for open connections too.
    pub fn set_policy(&self, policy: Policy) {
        self.0.policy.store(Arc::new(policy));
        self.0.changes.send_replace(());
    }

    /// Sets the certificate for new connections, and the CAs and revocation lists for the certificates of clients.
    /// Open connections whose client's certificate is not accepted any more are closed.
    ///
    /// # Errors
    /// If BoringSSL does not accept the certificate or the key.
    pub fn set_tls(&self, credentials: &Credentials, clients: &ClientTrust) -> Result<(), ErrorStack> {
        let context = tls::server(credentials, clients)?;
        let before = self.0.tls.load();
        // Unchanged, it does not make open connections verify their clients again.
        let kept = before.as_ref().as_ref().map(|tls| &tls.clients).filter(|kept| kept.trust == *clients);
        let clients = match kept {
            Some(kept) => Arc::clone(kept),
            None => Arc::new(VerifiedClients::new(clients)?),
        };
        self.0.tls.store(Arc::new(Some(ServerTls { context, clients })));
        self.0.changes.send_replace(());
        Ok(())
    }
}

/// Number of operations in the engine at the same time: some batches for each thread, so that threads do not run
/// idle; more would only form a queue in which a flood delays all other clients.
fn window(engine: &Engine, compute_threads: NonZeroUsize) -> usize {
    const BATCHES: usize = 4;
    let width = engine.batching(KeyType::Rsa { bits: 2048 }).width;
    BATCHES * width * compute_threads.get()
}
