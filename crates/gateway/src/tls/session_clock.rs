//! Clocks that differ. A session that another gateway has just made may be from the future here, and BoringSSL refuses
//! such sessions. Within a minute, its time counts as the time now.
//!
//! BoringSSL asks for the time without saying for which connection. It asks only while it is running, and that is while
//! the handshake is being polled: so the time is set for this thread, and only then ([`own`]).

use boring::ssl::SslContextBuilder;
use boring_sys as ffi;
use quadrille_resumption::unix_now;
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

/// How far other machines' clocks may be ahead, in seconds.
const AHEAD: u64 = 60;

thread_local! {
    /// The time is this, if it is not later.
    static AT_LEAST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Gives a context this clock.
pub(super) fn install(builder: &mut SslContextBuilder) {
    // SAFETY: the context is live, and the callback has no state of its own.
    unsafe { ffi::SSL_CTX_set_current_time_cb(builder.as_ptr(), Some(now)) };
}

/// A session made then is about to be looked at.
pub(super) fn tolerate(made: u64) {
    if !is_future(made) {
        AT_LEAST.set(Duration::from_secs(made));
    }
}

/// Whether no difference of clocks explains such a session.
pub(super) fn is_future(made: u64) -> bool {
    made > unix_now().as_secs() + AHEAD
}

/// A handshake's own clock.
#[derive(Debug, Default)]
pub(crate) struct SessionClock {
    at_least: Duration,
}

impl SessionClock {
    /// A turn of the handshake: what [`tolerate`] says in one holds in all that follow. (Of a session from the future
    /// BoringSSL makes a ticket that has expired.)
    pub(crate) fn turn<T>(&mut self, turn: impl FnOnce() -> T) -> T {
        AT_LEAST.set(self.at_least);
        let outcome = turn();
        self.at_least = AT_LEAST.replace(Duration::ZERO);
        outcome
    }
}

/// The handshake, with a clock of its own.
pub(crate) async fn own<F: Future>(handshake: F) -> F::Output {
    let mut handshake = pin!(handshake);
    let mut clock = SessionClock::default();
    poll_fn(|context| clock.turn(|| handshake.as_mut().poll(context))).await
}

/// BoringSSL's clock. Nothing in it panics.
unsafe extern "C" fn now(_: *const ffi::SSL, out: *mut ffi::timeval) {
    let now = unix_now().max(AT_LEAST.get());
    // SAFETY: BoringSSL passes a place for the answer.
    unsafe {
        (*out).tv_sec = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        (*out).tv_usec = i64::from(now.subsec_micros());
    }
}
