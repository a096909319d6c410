//! Keys that are in a key server on this machine: `quadrille keyserver --unix PATH`. The server's process computes for all
//! processes together, and none of them has the key.
//!
//! Inside ASYNC jobs, the operations of a process share one connection (`multiplexer`). A thread that blocks talks to the
//! server itself (`blocking`): that is two system calls, and nobody in between.

mod blocking;
mod connection;
mod multiplexer;

use crate::{
    error::{Failure, Reason},
    wait::{self, Outcome},
};
use quadrille_engine::{Operation, PublicKey};
use quadrille_keyless::wire::{ErrorCode, Ski};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use zeroize::Zeroizing;

/// A handshake is not held up longer than this by key servers.
const DEADLINE: Duration = Duration::from_secs(5);
/// A server that has not answered for so long is left for another one, if there is one.
const PATIENCE: Duration = Duration::from_secs(1);
/// A server that is not there is looked for so often.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);
/// How long the first operations wait for a server that has gone to come back. After that operations fail at once, until
/// it is there.
const RESTART: Duration = Duration::from_secs(1);

/// Key servers by their sockets; the first is preferred.
pub(crate) type Servers = Arc<[PathBuf]>;

/// The private half of a key, in key servers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteKey {
    ski: Ski,
    servers: Servers,
}

/// Why a server has not computed something.
#[derive(Clone, Debug)]
enum Trouble {
    Connect(String),
    Lost(String),
    Slow,
    Refused(ErrorCode),
}

impl RemoteKey {
    pub(crate) fn new(public: &PublicKey, servers: Vec<PathBuf>) -> Result<Self, Failure> {
        Ok(Self { ski: Ski::of(public.pkey())?, servers: servers.into() })
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

impl Trouble {
    fn failure(&self, server: Option<&Path>, ski: Ski) -> Failure {
        let server = server.map_or("no server".to_owned(), |server| format!("unix:{}", server.display()));
        let detail = match self {
            Self::Connect(error) => {
                format!(
                    "{server}: cannot connect: {error}; start it: quadrille keyserver --keys DIR --unix PATH"
                )
            }
            Self::Lost(error) => format!("{server}: the connection was lost: {error}"),
            Self::Slow => format!("{server}: no answer in time"),
            Self::Refused(code) => format!("{server}: {code}{}", remedy(*code)),
        };
        Failure::new(Reason::KeyServer, format!("key {ski}: {detail}"))
    }
}

fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Denied => "; decryption, for RSA key exchange, must be allowed by its --policy",
        ErrorCode::KeyNotFound => "; put the key into the directory of its --keys",
        _ => "",
    }
}

/// What a server has answered.
type Reply = Result<Zeroizing<Vec<u8>>, ErrorCode>;
