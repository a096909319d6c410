//! A thread that has nothing else to do asks a key server, and waits for the reply.

use super::{
    connection::Connection,
    server::{BETWEEN_ATTEMPTS, DEADLINE, PATIENCE, RESTART, ServerError, Servers},
};
use crate::{process::PerProcess, wait::Outcome};
use quadrille_engine::Operation;
use quadrille_keyless::wire::Ski;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The connections of this process that nobody uses now: as many as threads have asked at the same time.
static IDLE: PerProcess<Mutex<HashMap<PathBuf, Vec<Connection>>>> = PerProcess::new();

/// No server was there, and one operation has waited for them already.
static DOWN: AtomicBool = AtomicBool::new(false);

/// Asks one server after the other. An operation that was computed twice does no harm.
pub(super) fn compute(servers: &Servers, ski: Ski, operation: &Operation) -> Outcome {
    let began = Instant::now();
    loop {
        let mut last = (None, ServerError::Slow);
        for (index, server) in servers.iter().enumerate() {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let patience = if index + 1 < servers.len() { left.min(PATIENCE) } else { left };
            match ask(server, ski, operation, patience) {
                Ok(result) => {
                    DOWN.store(false, Ordering::Relaxed);
                    return Ok(result);
                }
                Err(trouble) => last = (Some(server.as_path()), trouble),
            }
        }
        let (server, trouble) = last;
        let is_gone = matches!(trouble, ServerError::Connect(_) | ServerError::Lost(_));
        if !is_gone || began.elapsed() > RESTART || DOWN.load(Ordering::Relaxed) {
            DOWN.store(is_gone, Ordering::Relaxed);
            return Err(trouble.failure(server, ski));
        }
        std::thread::sleep(BETWEEN_ATTEMPTS);
    }
}

type Asked = Result<zeroize::Zeroizing<Vec<u8>>, ServerError>;

fn ask(server: &Path, ski: Ski, operation: &Operation, patience: Duration) -> Asked {
    // A connection that has rested may be one to a server that has gone meanwhile.
    let rested = idle().get_mut(server).and_then(Vec::pop);
    if let Some(connection) = rested {
        match ask_over(connection, server, ski, operation, patience) {
            Err(ServerError::Lost(_)) => {}
            asked => return asked,
        }
    }
    let connection =
        Connection::open(server, Some(PATIENCE)).map_err(|error| ServerError::Connect(error.to_string()))?;
    ask_over(connection, server, ski, operation, patience)
}

/// The connection rests afterwards, unless something was wrong with it.
fn ask_over(
    mut connection: Connection,
    server: &Path,
    ski: Ski,
    operation: &Operation,
    patience: Duration,
) -> Asked {
    let until = Instant::now() + patience;
    let lost = |error: std::io::Error| ServerError::Lost(error.to_string());
    let id = connection
        .put(ski, operation)
        .ok_or_else(|| ServerError::Lost("the operation is too long".to_owned()))?;
    while !connection.send().map_err(lost)? {
        if Instant::now() > until {
            return Err(ServerError::Slow);
        }
    }
    let mut reply = None;
    while reply.is_none() {
        let came = connection.receive(|of, result| {
            if of == id {
                reply = Some(result);
            }
        });
        if !came.map_err(lost)? && Instant::now() >= until {
            return Err(ServerError::Slow);
        }
    }
    idle().entry(server.to_owned()).or_default().push(connection);
    reply.unwrap_or(Err(quadrille_keyless::wire::ErrorCode::Internal)).map_err(ServerError::Refused)
}

fn idle() -> MutexGuard<'static, HashMap<PathBuf, Vec<Connection>>> {
    IDLE.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}
