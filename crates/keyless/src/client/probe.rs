//! Probe of a server's availability and protocol, for operators.

use super::{ConnectError, Connector, job::Job};
use crate::{
    Address,
    session::{ClientEvent, ClientSession, KeepAlive},
    wire::Mode,
};
use std::{
    io,
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Response to a ping.
#[derive(Clone, Debug)]
pub struct Pong {
    /// Negotiated mode.
    pub mode: Mode,
    /// Negotiated parameters, for display: `TLSv1.3, X25519MLKEM768`.
    pub security: String,
    /// Time from the first packet to the end of the handshake.
    pub connected: Duration,
    /// Time from ping to pong, on the open connection.
    pub round_trip: Duration,
}

/// Connects to one server and pings it.
///
/// # Errors
/// If it cannot be reached, does not trust this client, or does not respond in time.
pub async fn ping(connector: &Connector, address: &Address, limit: Duration) -> Result<Pong, ConnectError> {
    let began = Instant::now();
    let mut connected = connector.connect(address, limit).await?;
    let handshake = began.elapsed();
    let mode = connected.mode;
    let keep_alive = KeepAlive::Pings { idle: limit, stall: limit };
    let mut session = ClientSession::<Job>::new(Instant::now(), mode, false, keep_alive);
    let answered = async {
        connected.stream.write_all(session.unsent()).await?;
        let mut buffer = [0; 2048];
        loop {
            let count = connected.stream.read(&mut buffer).await?;
            if count == 0 {
                let refused = "the server closed the connection; it may have rejected this certificate";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, refused));
            }
            let now = Instant::now();
            session.receive(now, &buffer[..count]);
            if let Some(ClientEvent::Established { round_trip }) =
                session.next_event(now).map_err(io::Error::other)?
            {
                return Ok(round_trip);
            }
        }
    };
    let answered = tokio::time::timeout(limit, answered).await;
    let round_trip = answered.map_err(|_| ConnectError::Timeout(limit))??;
    Ok(Pong { mode, security: connected.security, connected: handshake, round_trip })
}
