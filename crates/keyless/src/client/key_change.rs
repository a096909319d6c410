//! Generation and removal of keys on key servers: rare, so each request uses its own connection.

use super::{ConnectError, RemoteKey, shared::Shared};
use crate::{
    Address,
    session::{ClientEvent, ClientSession, Completion, KeepAlive, Outcome, RemoteOperation, SessionError},
    wire::{ErrorCode, Hints, KeyName, Request, Ski, opcode},
};
use boring::pkey::PKey;
use quadrille_engine::{KeyType, PublicKey, Zeroizing};
use std::{
    fmt, io,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Generation of an RSA-4096 key takes some seconds on a busy machine, and may wait for others.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reasons for which no server has performed the change.
#[derive(Debug)]
pub struct KeyChangeError(Vec<(Address, Refusal)>);

/// Reason for which one server has not performed it.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No connection to the server.
    #[error("{0}")]
    Unreachable(#[from] ConnectError),
    /// The server rejected the request.
    #[error("{0}")]
    Refused(ErrorCode),
    /// The server did not respond, or closed the connection.
    #[error("no response; check that its policy names this client, and its log for the reason")]
    Silent,
    /// The connection was interrupted.
    #[error("the connection was interrupted ({0}); check that its policy names this client")]
    Io(#[from] io::Error),
    /// Invalid response.
    #[error("{0}")]
    Session(#[from] SessionError),
}

impl KeyChangeError {
    /// Refusals by server.
    pub fn refusals(&self) -> impl Iterator<Item = (&Address, &Refusal)> {
        self.0.iter().map(|(server, refusal)| (server, refusal))
    }
}

impl fmt::Display for KeyChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said: Vec<_> = self.0.iter().map(|(server, refusal)| format!("{server}: {refusal}")).collect();
        f.write_str(&said.join("; "))
    }
}

impl std::error::Error for KeyChangeError {}

pub(super) async fn generate(
    shared: &Shared,
    key_type: KeyType,
    reference: &str,
) -> Result<RemoteKey, KeyChangeError> {
    let payload = opcode::generation(key_type, reference).unwrap_or_default();
    let mut refusals = Vec::new();
    for server in &shared.settings.servers {
        let key = KeyName::from(Ski([0; 20]));
        let change =
            KeyChange { key, opcode: opcode::GENERATE, payload: payload.clone(), made: Some(key_type) };
        let asked = ask(shared, server, change).await;
        let made = asked.and_then(|spki| public(&spki).ok_or(Refusal::Refused(ErrorCode::Format)));
        match made.map(RemoteKey::new) {
            Ok(Ok(key)) => return Ok(key),
            Ok(Err(_)) => refusals.push((server.clone(), Refusal::Refused(ErrorCode::Format))),
            Err(refusal) => refusals.push((server.clone(), refusal)),
        }
    }
    Err(KeyChangeError(refusals))
}

pub(super) async fn remove(shared: &Shared, key: Ski) -> Result<(), KeyChangeError> {
    let mut refusals = Vec::new();
    for server in &shared.settings.servers {
        let change = KeyChange { key: key.into(), opcode: opcode::REMOVE, payload: Vec::new(), made: None };
        match ask(shared, server, change).await {
            Ok(_) | Err(Refusal::Refused(ErrorCode::KeyNotFound)) => {}
            Err(refusal) => refusals.push((server.clone(), refusal)),
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(KeyChangeError(refusals)) }
}

/// Request for a key change.
struct KeyChange {
    key: KeyName,
    opcode: u8,
    payload: Vec<u8>,
    /// Type of the key to generate.
    made: Option<KeyType>,
}

impl RemoteOperation for KeyChange {
    fn request(&self, id: u32) -> Request<'_> {
        let (key, opcode, payload) = (self.key, self.opcode, &self.payload);
        Request { id, key, opcode, payload, hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        false
    }

    /// The first signature proves that the server has the private half.
    fn accepts(&self, result: &[u8]) -> bool {
        self.made.is_none_or(|kind| public(result).is_some_and(|public| public.key_type() == kind))
    }
}

fn public(spki: &[u8]) -> Option<PublicKey> {
    PublicKey::from_pkey(PKey::public_key_from_der(spki).ok()?).ok()
}

async fn ask(shared: &Shared, server: &Address, change: KeyChange) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let settings = &shared.settings;
    let mut connected = shared.connector.connect(server, settings.failover.deadline).await?;
    let now = Instant::now();
    let mut session = ClientSession::new(now, connected.mode, settings.padding, KeepAlive::Off);
    if session.submit(now, change, None).is_none() {
        return Err(Refusal::Refused(ErrorCode::Format));
    }
    let answered = async {
        connected.stream.write_all(session.unsent()).await?;
        let mut buffer = [0; 4096];
        loop {
            let count = connected.stream.read(&mut buffer).await?;
            if count == 0 {
                return Err(Refusal::Silent);
            }
            let now = Instant::now();
            session.receive(now, &buffer[..count]);
            while let Some(event) = session.next_event(now)? {
                let ClientEvent::Completed(Completion { outcome, .. }) = event else { continue };
                return match outcome {
                    Outcome::Computed(result) => Ok(result),
                    Outcome::Refused(error) => Err(Refusal::Refused(error)),
                    Outcome::Withdrawn { .. } | Outcome::Expired => Err(Refusal::Silent),
                };
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.unwrap_or(Err(Refusal::Silent))
}
