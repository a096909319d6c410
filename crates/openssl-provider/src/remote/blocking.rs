//! Blocking client of key servers: the calling thread sends a request, and waits for the reply.

use super::{
    operation::KeyServerOperation,
    server::{DEADLINE, RECONNECT_INTERVAL, RESTART_GRACE, SERVER_TIMEOUT, ServerError, Servers},
};
use crate::{process::PerProcess, wait};
use quadrille_keyless::session::{ClientEvent, KeepAlive, Outcome};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

type Connection = super::connection::Connection<Arc<KeyServerOperation>>;

/// Idle connections of this process, as many as threads have sent requests at the same time.
static IDLE: PerProcess<Mutex<HashMap<PathBuf, Vec<Connection>>>> = PerProcess::new();

/// Whether no server is reachable and one operation has already waited for them.
static DOWN: AtomicBool = AtomicBool::new(false);

/// Tries one server after the other. Computing an operation twice does no harm.
pub(super) fn compute(servers: &Servers, operation: KeyServerOperation) -> wait::Outcome {
    let operation = Arc::new(operation);
    let began = Instant::now();
    loop {
        let mut last = (None, ServerError::Slow);
        for (index, server) in servers.iter().enumerate() {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let timeout = if index + 1 < servers.len() { left.min(SERVER_TIMEOUT) } else { left };
            match ask(server, &operation, timeout) {
                Ok(result) => {
                    DOWN.store(false, Ordering::Relaxed);
                    return Ok(result);
                }
                Err(last_error) => last = (Some(server.as_path()), last_error),
            }
        }
        let (server, last_error) = last;
        let is_gone = matches!(last_error, ServerError::Connect(_) | ServerError::Lost(_));
        if !is_gone || began.elapsed() > RESTART_GRACE || DOWN.load(Ordering::Relaxed) {
            DOWN.store(is_gone, Ordering::Relaxed);
            return Err(last_error.failure(server, operation.ski));
        }
        std::thread::sleep(RECONNECT_INTERVAL);
    }
}

type Answer = Result<Zeroizing<Vec<u8>>, ServerError>;

fn ask(server: &Path, operation: &Arc<KeyServerOperation>, timeout: Duration) -> Answer {
    // The server of an idle connection may have stopped meanwhile.
    let kept = idle().get_mut(server).and_then(Vec::pop);
    if let Some(connection) = kept {
        match ask_over(connection, server, operation, timeout) {
            Err(ServerError::Lost(_)) => {}
            answer => return answer,
        }
    }
    let opened = Connection::open(server, Some(SERVER_TIMEOUT), KeepAlive::Off);
    let connection = opened.map_err(|error| ServerError::Connect(error.to_string()))?;
    ask_over(connection, server, operation, timeout)
}

/// Sends the request over this connection, which is kept for the next operation unless it fails.
fn ask_over(
    mut connection: Connection,
    server: &Path,
    operation: &Arc<KeyServerOperation>,
    timeout: Duration,
) -> Answer {
    let now = Instant::now();
    let submitted = connection.session.submit(now, Arc::clone(operation), Some(now + timeout));
    submitted.ok_or_else(|| ServerError::Lost("the operation is too long".to_owned()))?;
    let outcome = loop {
        connection.send()?;
        if let Some(ClientEvent::Completed(completion)) = connection.session.next_event(Instant::now())? {
            break completion.outcome;
        }
        connection.receive()?;
    };
    let answer = match outcome {
        Outcome::Computed(result) => Ok(result),
        Outcome::Refused(code) => Err(ServerError::Refused(code)),
        Outcome::Expired | Outcome::Withdrawn { .. } => return Err(ServerError::Slow),
    };
    idle().entry(server.to_owned()).or_default().push(connection);
    answer
}

fn idle() -> MutexGuard<'static, HashMap<PathBuf, Vec<Connection>>> {
    IDLE.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}
