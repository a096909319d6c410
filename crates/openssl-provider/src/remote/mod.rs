//! Keys in a key server on this machine: `quadrille keyserver --unix PATH`. The server's process computes for all
//! processes together, and only it holds the key.
//!
//! Inside ASYNC jobs, the operations of a process share one connection (`multiplexer`). A thread that blocks talks to
//! the server directly (`blocking`), which takes two system calls and no other thread. Both drive the session of
//! `quadrille_keyless`, on sockets of their own and without an async runtime.

mod blocking;
mod connection;
mod multiplexer;
mod operation;
mod server;

use crate::{
    error::Failure,
    wait::{self, Outcome},
};
use operation::{KeyServerOperation, VerificationKey};
use quadrille_engine::{Operation, PublicKey};
use quadrille_keyless::wire::Ski;
use server::Servers;
use std::{path::PathBuf, sync::Arc};

/// The private half of a key, held by key servers.
pub(crate) struct RemoteKey {
    ski: Ski,
    verification_key: Arc<VerificationKey>,
    servers: Servers,
}

impl RemoteKey {
    pub(crate) fn new(public: &PublicKey, servers: Vec<PathBuf>) -> Result<Self, Failure> {
        let (ski, verification_key) = (Ski::from_key(public.pkey())?, VerificationKey::new(public)?);
        Ok(Self { ski, verification_key: Arc::new(verification_key), servers: servers.into() })
    }

    /// Computes an operation. The result is verified with the public key.
    pub(crate) fn compute(&self, operation: Operation) -> Outcome {
        let verification_key = Arc::clone(&self.verification_key);
        let operation = KeyServerOperation { ski: self.ski, operation, verification_key };
        if wait::can_pause() {
            wait::for_answer(multiplexer::submit(&self.servers, operation)?)
        } else {
            blocking::compute(&self.servers, operation)
        }
    }
}
