//! State shared by the callbacks of a handshake, stored in the connection's ex_data slot.

use super::resumption_backend::ResumptionBackend;
use crate::{admission::Visit, connection::KeyTiming};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{Ssl, SslRef},
};
use futures_util::task::AtomicWaker;
use quadrille_engine::OperationError;
use quadrille_keyless::client;
use std::{
    future::{Future, poll_fn},
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{Arc, LazyLock, OnceLock, atomic::AtomicU8},
    task::{Wake, Waker},
    time::Duration,
};
use tokio::net::TcpStream;

/// State of a handshake, shared by its connection's callbacks.
pub(crate) struct HandshakeState {
    /// The client.
    pub(super) peer: Peer,
    /// Admission state.
    pub(super) visit: Arc<Visit>,
    /// Result of the private-key operation.
    pub(super) key: OnceLock<Result<KeyTiming, KeyFailure>>,
    /// Timing of the engine's part in the key exchange.
    pub(super) key_exchange: OnceLock<ExchangeTiming>,
    pub(super) resumption: ResumptionState,
    /// Reason for which the client's certificate was rejected.
    pub(super) client_rejection: OnceLock<ClientRejection>,
    /// Set if there is no certificate for the name that the client requested.
    pub(super) unknown_name: OnceLock<()>,
    /// Task that drives the handshake, for operations that the `boring` crate does not poll.
    task: AtomicWaker,
}

/// The client of a handshake, by transport.
pub(crate) enum Peer {
    /// TCP client; the socket has its address, and reports a disconnect.
    Tcp(Arc<TcpStream>),
    /// QUIC client; a disconnect is not reported.
    Quic { client: SocketAddr, local: SocketAddr },
}

/// Timing of the engine's part in the key exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeTiming {
    /// Code point of the group.
    pub(super) group: u16,
    pub(super) cpu: Duration,
}

/// Resumption state of a connection.
pub(crate) struct ResumptionState {
    pub(super) backend: Arc<ResumptionBackend>,
    /// Ticket that the client offered, kept to determine why it was not accepted.
    pub(super) ticket: OnceLock<Box<[u8]>>,
    /// Result of the session store lookup, if there was one.
    pub(super) stored: OnceLock<Result<(), &'static str>>,
    /// Set if the client offered early data.
    pub(super) early: OnceLock<()>,
    /// Number of tickets issued.
    pub(super) issued: AtomicU8,
}

/// Reason for which a private-key operation has no result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyFailure {
    /// The client closed the connection while its operation was queued.
    ClientLeft,
    /// The queue was full.
    Shed,
    /// The key is on key servers, and these have not computed the operation.
    Remote(client::Failure),
    /// Any other reason: the client's input was invalid, or the engine has failed.
    Failed,
}

/// Reason for which a client's certificate was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientRejection {
    Name,
    Pin,
}

static STATE: LazyLock<Option<Index<Ssl, Arc<HandshakeState>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl HandshakeState {
    /// Attaches the state to a connection before its handshake.
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
        let (client_rejection, unknown_name) = (OnceLock::new(), OnceLock::new());
        let task = AtomicWaker::new();
        let state = Self { peer, visit, key, key_exchange, resumption, client_rejection, unknown_name, task };
        ssl.set_ex_data(index, Arc::new(state));
        Ok(())
    }

    /// Returns the state of this connection's handshake.
    pub(super) fn attached(ssl: &SslRef) -> Option<&Arc<Self>> {
        ssl.ex_data((*STATE)?)
    }

    /// Returns the state of this connection's handshake for another owner.
    pub(crate) fn of(ssl: &SslRef) -> Option<Arc<Self>> {
        Self::attached(ssl).map(Arc::clone)
    }

    /// Runs a handshake with this state in the current task, which is woken when an operation has a result.
    pub(crate) async fn driven<F: Future>(state: Option<Arc<Self>>, handshake: F) -> F::Output {
        let mut handshake = pin!(handshake);
        poll_fn(|context| {
            state.iter().for_each(|state| state.task.register(context.waker()));
            handshake.as_mut().poll(context)
        })
        .await
    }

    /// Sets the task that drives the handshake of a connection.
    pub(crate) fn set_task(ssl: &SslRef, task: &Waker) {
        Self::attached(ssl).into_iter().for_each(|state| state.task.register(task));
    }

    /// Returns the admission state.
    pub(crate) fn visit(ssl: &SslRef) -> Option<&Visit> {
        Some(&Self::attached(ssl)?.visit)
    }

    /// Returns the result of the private-key operation; `None` if there was no operation, because the session was
    /// resumed or the handshake ended before.
    pub(crate) fn key_result(ssl: &SslRef) -> Option<Result<KeyTiming, KeyFailure>> {
        Self::attached(ssl)?.key.get().copied()
    }

    /// Returns whether the handshake ended because there is no certificate for the requested name.
    pub(crate) fn is_name_unknown(ssl: &SslRef) -> bool {
        Self::attached(ssl).is_some_and(|state| state.unknown_name.get().is_some())
    }

    /// Returns the reason for which the client's certificate was rejected by names or pins.
    pub(crate) fn client_rejection(ssl: &SslRef) -> Option<ClientRejection> {
        Self::attached(ssl)?.client_rejection.get().copied()
    }
}

/// Wakes the task that drives the handshake.
impl Wake for HandshakeState {
    fn wake(self: Arc<Self>) {
        self.task.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.task.wake();
    }
}

impl Peer {
    /// Returns the client's address, and the local address.
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
