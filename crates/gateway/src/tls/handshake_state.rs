//! What the callbacks of one handshake know and learn: one value in the connection's one slot for data of ours.

use super::resumption_backend::ResumptionBackend;
use crate::{admission::Visit, connection::KeyTiming};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{Ssl, SslRef},
};
use quadrille_engine::OperationError;
use quadrille_keyless::client;
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock, OnceLock, atomic::AtomicU8},
    time::Duration,
};
use tokio::net::TcpStream;

/// One handshake, as the callbacks of its connection share it.
pub(crate) struct HandshakeState {
    /// Who it is with.
    pub(super) peer: Peer,
    /// Whether it may go on.
    pub(super) visit: Arc<Visit>,
    /// What came of the private-key operation.
    pub(super) key: OnceLock<Result<KeyTiming, KeyFailure>>,
    /// What the engine has done of the key exchange.
    pub(super) key_exchange: OnceLock<ExchangeTiming>,
    pub(super) resumption: ResumptionState,
    /// Why the client's certificate was refused.
    pub(super) client_rejection: OnceLock<ClientRejection>,
}

/// The client of a handshake, by what it comes.
pub(crate) enum Peer {
    /// The socket tells when the client has left, and who it is.
    Tcp(Arc<TcpStream>),
    /// Nothing tells when it has left.
    Quic { client: SocketAddr, local: SocketAddr },
}

/// What the engine's part in the key exchange took.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeTiming {
    /// The group's code point.
    pub(super) group: u16,
    pub(super) cpu: Duration,
}

/// What a connection needs for resumption, and what it learned.
pub(crate) struct ResumptionState {
    pub(super) backend: Arc<ResumptionBackend>,
    /// The ticket that the client came with, kept to find out why it was not accepted.
    pub(super) ticket: OnceLock<Box<[u8]>>,
    /// What the store said, if it was asked.
    pub(super) stored: OnceLock<Result<(), &'static str>>,
    /// Set if the client offered early data.
    pub(super) early: OnceLock<()>,
    /// Tickets made.
    pub(super) issued: AtomicU8,
}

/// Why there is no result of a private-key operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyFailure {
    /// The client closed the connection while its operation waited.
    ClientLeft,
    /// Too many operations wait.
    Shed,
    /// The key is on key servers, and they have not computed it.
    Remote(client::Failure),
    /// Everything else; the client sent nonsense, or the engine has failed.
    Failed,
}

/// Why a client's certificate was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientRejection {
    Name,
    Pin,
}

static STATE: LazyLock<Option<Index<Ssl, Arc<HandshakeState>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl HandshakeState {
    /// Prepares a connection for its handshake.
    pub(super) fn attach(
        ssl: &mut SslRef,
        peer: Peer,
        backend: &Arc<ResumptionBackend>,
        visit: Arc<Visit>,
    ) -> Result<(), ErrorStack> {
        let index = (*STATE).ok_or_else(ErrorStack::get)?;
        let resumption = ResumptionState {
            backend: Arc::clone(backend),
            ticket: OnceLock::new(),
            stored: OnceLock::new(),
            early: OnceLock::new(),
            issued: AtomicU8::new(0),
        };
        let (key, key_exchange) = (OnceLock::new(), OnceLock::new());
        let client_rejection = OnceLock::new();
        let state = Self { peer, visit, key, key_exchange, resumption, client_rejection };
        ssl.set_ex_data(index, Arc::new(state));
        Ok(())
    }

    /// The state of this connection's handshake.
    pub(super) fn attached(ssl: &SslRef) -> Option<&Arc<Self>> {
        ssl.ex_data((*STATE)?)
    }

    /// What admission knows of this handshake.
    pub(crate) fn visit(ssl: &SslRef) -> Option<&Visit> {
        Some(&Self::attached(ssl)?.visit)
    }

    /// What came of the private-key operation; `None` if there was none, because the session was resumed or the
    /// handshake ended before.
    pub(crate) fn key_result(ssl: &SslRef) -> Option<Result<KeyTiming, KeyFailure>> {
        Self::attached(ssl)?.key.get().copied()
    }

    /// Why the client's certificate was refused, if it was by its names or by pins.
    pub(crate) fn client_rejection(ssl: &SslRef) -> Option<ClientRejection> {
        Self::attached(ssl)?.client_rejection.get().copied()
    }
}

impl Peer {
    /// The client's address, and the one that it has connected to.
    pub(super) fn addresses(&self) -> (Option<IpAddr>, Option<IpAddr>) {
        let ip = |address: SocketAddr| address.ip();
        match self {
            Self::Tcp(tcp) => (tcp.peer_addr().ok().map(ip), tcp.local_addr().ok().map(ip)),
            Self::Quic { client, local } => (Some(client.ip()), Some(local.ip())),
        }
    }
}

impl From<OperationError> for KeyFailure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::QueueFull => Self::Shed,
            _ => Self::Failed,
        }
    }
}

impl From<client::Failure> for KeyFailure {
    fn from(failure: client::Failure) -> Self {
        match failure {
            client::Failure::Full => Self::Shed,
            other => Self::Remote(other),
        }
    }
}
