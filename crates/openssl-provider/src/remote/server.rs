//! What is to be known of key servers: where they are, how long they are waited for, and how they fail.

use crate::error::{Failure, Reason};
use quadrille_keyless::{
    session::SessionError,
    wire::{ErrorCode, Ski},
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// A handshake is not held up longer than this by key servers.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// A server that has not answered for so long is left for another one, if there is one.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(1);
/// A server that is not there is looked for so often.
pub(super) const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);
/// How long the first operations wait for a server that has gone to come back. After that operations fail at once,
/// until it is there.
pub(super) const RESTART_GRACE: Duration = Duration::from_secs(1);

/// Key servers by their sockets; the first is preferred.
pub(crate) type Servers = Arc<[PathBuf]>;

/// Why a server has not computed something.
#[derive(Clone, Debug)]
pub(super) enum ServerError {
    Connect(String),
    Lost(String),
    Slow,
    Refused(ErrorCode),
}

impl ServerError {
    pub(super) fn failure(&self, server: Option<&Path>, ski: Ski) -> Failure {
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

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<SessionError> for ServerError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Silent => Self::Slow,
            other => Self::Lost(other.to_string()),
        }
    }
}

fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Denied => "; decryption, for RSA key exchange, must be allowed by its --policy",
        ErrorCode::KeyNotFound => "; put the key into the directory of its --keys",
        _ => "",
    }
}
