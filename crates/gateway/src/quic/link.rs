//! Handle of a QUIC connection, shared by the endpoint, which dispatches its datagrams, the task that serves it, and
//! the bodies of its requests.

use super::{
    Code, connection_id::ConnectionIds, keys::ResetTokens, socket::Ends, stream_state::StreamState,
    table::Table, transmission::Transmission,
};
use crate::{
    connection::Alarm,
    telemetry::sampling,
    tls::{HandshakeState, resumption::session_clock::SessionClock},
};
use boring::ssl::SslRef;
use quadrille_handshake_timing::Marks;
use quiche::RecvInfo;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

/// Handle of a connection. Clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<State>>);

pub(super) struct State {
    pub(super) quic: quiche::Connection,
    /// HTTP/3 state, once HTTP/3 may be used.
    pub(super) http: Option<quiche::h3::Connection>,
    /// Requests in progress.
    pub(super) streams: HashMap<u64, StreamState>,
    /// Whether the connection has to be driven, because data was read or written.
    pub(super) dirty: bool,
    /// Whether the driver is running, so that it need not be woken.
    in_turn: bool,
    ids: Ids,
    clock: SessionClock,
    /// Measurement of the handshake, if it is sampled: the packets that carry its messages count, as sockets do for
    /// TCP.
    marks: Option<Marks>,
    transmission: Transmission,
    driver: Option<Waker>,
    alarm: Alarm,
}

/// Connection IDs in the endpoint's table.
pub(super) struct Ids {
    pub(super) table: Table<Link>,
    pub(super) maker: Arc<ConnectionIds>,
    pub(super) resets: Arc<ResetTokens>,
    pub(super) event_loop: u16,
    /// Destination of its datagrams.
    pub(super) local: SocketAddr,
    pub(super) registered: Vec<Box<[u8]>>,
}

/// Reason for which a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The client has closed it, or has disappeared.
    ByClient,
    /// TLS, QUIC or HTTP has failed or ended it here, with this code (RFC 9000 section 20).
    Here(u64),
}

impl Link {
    pub(super) fn new(
        mut quic: quiche::Connection,
        transmission: Transmission,
        ids: Ids,
        marks: Option<Marks>,
    ) -> Self {
        // Callbacks of BoringSSL require a waker, and may run before a task drives the connection.
        quic.as_mut().set_task_waker(Some(Waker::noop().clone()));
        Self(Arc::new(Mutex::new(State {
            quic,
            http: None,
            streams: HashMap::new(),
            dirty: false,
            in_turn: false,
            ids,
            clock: SessionClock::default(),
            marks,
            transmission,
            driver: None,
            alarm: Alarm::default(),
        })))
    }

    /// Registers another ID; returns false if another connection has it.
    pub(super) fn register(&self, id: &[u8]) -> bool {
        let mut state = self.state();
        let is_new = state.ids.table.insert(id, self.clone());
        if is_new {
            state.ids.registered.push(id.into());
        }
        is_new
    }

    /// Processes a received datagram.
    pub(super) fn receive(&self, datagram: &mut [u8], ends: Ends) {
        let mut state = self.state();
        let State { quic, clock, marks, transmission, .. } = &mut *state;
        transmission.receives(datagram.len());
        // quiche counts packets that it could decrypt.
        let processed = transmission.may_be_validated_by(datagram).then(|| quic.stats().recv);
        let info = RecvInfo { from: ends.client, to: ends.local };
        let received = clock.turn(|| sampling::turn(marks.as_mut(), || quic.recv(datagram, info)));
        if processed.is_some_and(|before| quic.stats().recv > before) {
            transmission.validated();
        }
        if let Err(error) = received
            && error != quiche::Error::Done
        {
            tracing::debug!(client = %ends.client, %error, "QUIC connection failed");
        }
        state.wake_driver();
    }

    /// Marks the start of a turn of the driving task; it ends with [`Self::poll_drive`].
    pub(crate) fn begin_turn(&self) {
        self.state().in_turn = true;
    }

    /// Drives the connection: timers, transmission, new connection IDs. Becomes ready when it has ended and nothing
    /// remains to be sent. The polling task is woken when there is more to do.
    pub(crate) fn poll_drive(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        state.attach(context);
        state.in_turn = false;
        loop {
            state.turn(self, context);
            if state.quic.is_closed() {
                return Poll::Ready(());
            }
            let due = [state.quic.timeout_instant(), state.transmission.due()];
            let Some(due) = due.into_iter().flatten().min() else { return Poll::Pending };
            ready!(state.alarm.poll_due(context, due));
        }
    }

    /// Becomes ready when requests may be read: the handshake is complete, or early data is accepted.
    pub(crate) fn poll_handshake(&self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let driven = self.poll_drive(context);
        let state = self.state();
        if let Some(closed) = state.closed() {
            return Poll::Ready(Err(closed));
        }
        if state.quic.is_established() || state.quic.is_in_early_data() {
            return Poll::Ready(Ok(()));
        }
        driven.map(|()| Err(Closed::ByClient))
    }

    /// Returns whether the client's data is early data, which may be replayed.
    pub(crate) fn is_early(&self) -> bool {
        !self.state().quic.is_established()
    }

    /// Sends a PING, so that a client waiting for a response does not time out.
    pub(crate) fn ping(&self) {
        let mut state = self.state();
        let _ = state.quic.send_ack_eliciting();
        state.wake_driver();
    }

    /// Returns the work of datagrams since the last call, in the bytes that cost as much.
    pub(crate) fn take_work(&self) -> usize {
        self.state().transmission.take_work()
    }

    /// Takes the measurement of the completed handshake.
    pub(crate) fn take_marks(&self) -> Option<Marks> {
        self.state().marks.take()
    }

    /// Calls `look` with the TLS state.
    pub(crate) fn with_tls<T>(&self, look: impl FnOnce(&mut SslRef) -> T) -> T {
        look(self.state().quic.as_mut())
    }

    /// Closes the connection; unsent data is lost.
    pub(crate) fn close(&self, code: Code) {
        let mut state = self.state();
        let _ = state.quic.close(true, code.value(), b"");
        state.wake_driver();
    }

    /// Removes the connection from the endpoint's table. To be called when it has ended.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.end_streams();
        let (table, ids) = (state.ids.table.clone(), std::mem::take(&mut state.ids.registered));
        drop(state);
        ids.iter().for_each(|id| table.remove(id));
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the reason for which the connection has ended, if it has.
    pub(super) fn closed(&self) -> Option<Closed> {
        if let Some(error) = self.quic.local_error() {
            return Some(Closed::Here(error.error_code));
        }
        let gone = self.quic.peer_error().is_some() || self.quic.is_draining() || self.quic.is_closed();
        gone.then_some(Closed::ByClient)
    }

    /// Wakes the driver after data was read or written outside of its turn.
    pub(super) fn touch(&mut self) {
        if !std::mem::replace(&mut self.dirty, true) && !self.in_turn {
            self.wake_driver();
        }
    }

    fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// Makes this task the driver, also for BoringSSL's callbacks.
    fn attach(&mut self, context: &Context<'_>) {
        if self.driver.as_ref().is_none_or(|driver| !driver.will_wake(context.waker())) {
            self.driver = Some(context.waker().clone());
            self.quic.as_mut().set_task_waker(Some(context.waker().clone()));
        }
        if !self.quic.is_established() {
            HandshakeState::set_task(self.quic.as_mut(), context.waker());
        }
    }

    fn turn(&mut self, link: &Link, context: &mut Context<'_>) {
        self.dirty = false;
        let Self { quic, clock, marks, transmission, .. } = self;
        let work = || {
            if quic.timeout_instant().is_some_and(|due| due <= Instant::now()) {
                quic.on_timeout();
            }
            transmission.send(quic, context);
        };
        clock.turn(|| sampling::turn(marks.as_mut(), work));
        self.renew_ids(link);
        if self.closed().is_some() {
            self.end_streams();
        } else {
            self.wake_writers();
        }
    }

    /// Wakes the writers that can continue, and those whose stream was stopped, which is not reported otherwise.
    fn wake_writers(&mut self) {
        let Self { quic, streams, .. } = self;
        while let Some(id) = quic.stream_writable_next() {
            streams.get_mut(&id).into_iter().for_each(StreamState::wake_writer);
        }
        for (&id, stream) in streams {
            if !stream.reset && matches!(quic.stream_capacity(id), Err(quiche::Error::StreamStopped(_))) {
                stream.reset();
            }
        }
    }

    /// Resets all streams at the end of the connection.
    fn end_streams(&mut self) {
        self.streams.values_mut().filter(|stream| !stream.reset).for_each(StreamState::reset);
    }

    /// Issues as many connection IDs as the client allows, so that it can migrate (RFC 9000 section 5.1.1).
    fn renew_ids(&mut self, link: &Link) {
        while let Some(retired) = self.quic.retired_scid_next() {
            self.ids.registered.retain(|id| id[..] != retired[..]);
            self.ids.table.remove(&retired);
        }
        while self.quic.is_established() && self.quic.scids_left() > 0 {
            let id = self.ids.maker.make(self.ids.event_loop);
            let Some(token) = self.ids.resets.of(self.ids.local, &id) else { return };
            if !self.ids.table.insert(&id, link.clone()) {
                return;
            }
            self.ids.registered.push(id.as_ref().into());
            if self.quic.new_scid(&id, token, false).is_err() {
                return;
            }
        }
    }
}
