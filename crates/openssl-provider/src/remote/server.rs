//! Key server addresses, timeouts and errors.

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

/// Maximum time that key servers may delay a handshake.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// Time without a response after which another server is used, if there is one.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between connection attempts to unreachable servers.
pub(super) const RECONNECT_INTERVAL: Duration = Duration::from_millis(20);
/// Time that the first operations wait for a stopped server to restart. After that, operations fail at once until it
/// is reachable.
pub(super) const RESTART_GRACE: Duration = Duration::from_secs(1);

/// Key servers by their sockets, in order of preference.
pub(crate) type Servers = Arc<[PathBuf]>;

/// Reason why a server did not compute an operation.
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
            Self::Slow => format!("{server}: no response in time"),
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
        ErrorCode::Denied => "; its --policy must allow decryption for RSA key exchange",
        ErrorCode::KeyNotFound => "; add the key to the directory of its --keys",
        _ => "",
    }
}
