//! One QUIC connection, within reach of all who have to do with it: the endpoint, which has its datagrams, the task that
//! serves it, and the bodies of its requests, wherever they are read.

use super::{
    Code, connection_id::ConnectionIds, keys::ResetTokens, socket::Ends, stream_state::StreamState,
    table::Table, transmission::Transmission,
};
use crate::{connection::Alarm, telemetry::sampling, tls::session_clock::SessionClock};
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

/// A connection. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<State>>);

pub(super) struct State {
    pub(super) quic: quiche::Connection,
    /// Once HTTP/3 may be spoken.
    pub(super) http: Option<quiche::h3::Connection>,
    /// Requests under way.
    pub(super) streams: HashMap<u64, StreamState>,
    /// Something was read or written that the peer has to be told of.
    pub(super) dirty: bool,
    /// The driver is at work, and looks by itself.
    in_turn: bool,
    ids: Ids,
    clock: SessionClock,
    /// Of the handshake, if it is measured: what carries its messages counts to them, as sockets do for TCP.
    marks: Option<Marks>,
    transmission: Transmission,
    driver: Option<Waker>,
    alarm: Alarm,
}

/// Under which ids the endpoint finds the connection.
pub(super) struct Ids {
    pub(super) table: Table<Link>,
    pub(super) maker: Arc<ConnectionIds>,
    pub(super) resets: Arc<ResetTokens>,
    pub(super) event_loop: u16,
    /// Where its datagrams come to.
    pub(super) local: SocketAddr,
    pub(super) registered: Vec<Box<[u8]>>,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The client has closed it, or has gone.
    ByClient,
    /// TLS, QUIC or HTTP has failed here, or has ended it, with this code (RFC 9000 section 20).
    Here(u64),
}

impl Link {
    pub(super) fn new(
        mut quic: quiche::Connection,
        transmission: Transmission,
        ids: Ids,
        marks: Option<Marks>,
    ) -> Self {
        // Callbacks of BoringSSL may run before a task drives the connection, and need one.
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

    /// One more id of it; false if another connection has that.
    pub(super) fn register(&self, id: &[u8]) -> bool {
        let mut state = self.state();
        let is_new = state.ids.table.insert(id, self.clone());
        if is_new {
            state.ids.registered.push(id.into());
        }
        is_new
    }

    /// A datagram has come.
    pub(super) fn receive(&self, datagram: &mut [u8], ends: Ends) {
        let mut state = self.state();
        let State { quic, clock, marks, transmission, .. } = &mut *state;
        transmission.receives(datagram.len());
        let info = RecvInfo { from: ends.client, to: ends.local };
        let received = clock.turn(|| sampling::turn(marks.as_mut(), || quic.recv(datagram, info)));
        if let Err(error) = received
            && error != quiche::Error::Done
        {
            tracing::debug!(client = %ends.client, %error, "a QUIC connection has failed");
        }
        state.wake_driver();
    }

    /// The task that drives the connection begins a turn, which ends when it is driven.
    pub(crate) fn begin_turn(&self) {
        self.state().in_turn = true;
    }

    /// Moves the connection on: timers, what there is to send, new connection ids. Ready when it is over, and nobody needs
    /// to be told any more. Whoever polls this is woken when there is more to do.
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

    /// Ready when requests may be read: the handshake is complete, or early data is let in.
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

    /// Whether the client has yet to prove that what it sends is no copy.
    pub(crate) fn is_early(&self) -> bool {
        !self.state().quic.is_established()
    }

    /// Says that it is alive, so that a client which waits for an answer does not forget it.
    pub(crate) fn ping(&self) {
        let mut state = self.state();
        let _ = state.quic.send_ack_eliciting();
        state.wake_driver();
    }

    /// What was measured of the handshake, which is over.
    pub(crate) fn take_marks(&self) -> Option<Marks> {
        self.state().marks.take()
    }

    /// Looks at its TLS.
    pub(crate) fn with_tls<T>(&self, look: impl FnOnce(&mut SslRef) -> T) -> T {
        look(self.state().quic.as_mut())
    }

    /// Ends it; what was not sent by then is lost.
    pub(crate) fn close(&self, code: Code) {
        let mut state = self.state();
        let _ = state.quic.close(true, code.value(), b"");
        state.wake_driver();
    }

    /// Nobody finds it any more. To be called when it is over.
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
    /// Why it is over, if it is.
    pub(super) fn closed(&self) -> Option<Closed> {
        if let Some(error) = self.quic.local_error() {
            return Some(Closed::Here(error.error_code));
        }
        let gone = self.quic.peer_error().is_some() || self.quic.is_draining() || self.quic.is_closed();
        gone.then_some(Closed::ByClient)
    }

    /// Something was read or written outside of a turn of the driver's.
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

    /// Has this task woken, by BoringSSL's callbacks too.
    fn attach(&mut self, context: &Context<'_>) {
        if self.driver.as_ref().is_none_or(|driver| !driver.will_wake(context.waker())) {
            self.driver = Some(context.waker().clone());
            self.quic.as_mut().set_task_waker(Some(context.waker().clone()));
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

    /// Wakes who can write again, and who need not any more: of a stream that the client has stopped nobody else tells.
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

    /// The connection is over, and with it all of them.
    fn end_streams(&mut self) {
        self.streams.values_mut().filter(|stream| !stream.reset).for_each(StreamState::reset);
    }

    /// Gives the client as many connection ids as it takes, so that it can move (RFC 9000 section 5.1.1).
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
