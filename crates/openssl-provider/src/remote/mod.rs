//! Keys that are in a key server on this machine: `quadrille keyserver --unix PATH`. The server's process computes for all
//! processes together, and none of them has the key.
//!
//! Inside ASYNC jobs, the operations of a process share one connection (`multiplexer`). A thread that blocks talks to the
//! server itself (`blocking`): that is two system calls, and nobody in between.

mod blocking;
mod connection;
mod multiplexer;
mod server;

use crate::{
    error::Failure,
    wait::{self, Outcome},
};
use quadrille_engine::{Operation, PublicKey};
use quadrille_keyless::wire::Ski;
use server::Servers;
use std::path::PathBuf;

/// The private half of a key, in key servers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteKey {
    ski: Ski,
    servers: Servers,
}

impl RemoteKey {
    pub(crate) fn new(public: &PublicKey, servers: Vec<PathBuf>) -> Result<Self, Failure> {
        Ok(Self { ski: Ski::from_key(public.pkey())?, servers: servers.into() })
    }

    /// Computes an operation. The key server's engine has checked the result before it sent it, and has the key anyway: to check it
    /// once more here would cost as much as the way there and back.
    pub(crate) fn compute(&self, operation: Operation) -> Outcome {
        if wait::can_pause() {
            wait::for_answer(multiplexer::submit(&self.servers, self.ski, operation)?)
        } else {
            blocking::compute(&self.servers, self.ski, &operation)
        }
    }
}
