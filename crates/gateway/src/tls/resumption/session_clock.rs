//! Tolerance for clock skew. A session created by another gateway may lie in the future here, and BoringSSL rejects
//! such sessions. Within a minute, the session's time counts as the current time.
//!
//! BoringSSL requests the time without naming the connection. It does so only while the handshake is polled, so the
//! time is set for this thread during the poll ([`own`]).
//! the handshake is being polled: so the time is set for this thread, and only then ([`own`]).

use boring::ssl::SslContextBuilder;
use boring_sys as ffi;
use quadrille_unix_time::since_epoch;
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

/// Maximum clock skew of other machines, in seconds.
const AHEAD: u64 = 60;

thread_local! {
    /// Minimum of the time that BoringSSL receives.
    static AT_LEAST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Installs this clock on a context.
pub(crate) fn install(builder: &mut SslContextBuilder) {
    // SAFETY: the context is live, and the callback has no state of its own.
    unsafe { ffi::SSL_CTX_set_current_time_cb(builder.as_ptr(), Some(now)) };
}

/// Tolerates a session created at this time, which is about to be checked.
pub(crate) fn tolerate(made: u64) {
    if !is_future(made) {
        AT_LEAST.set(Duration::from_secs(made));
    }
}

/// Returns whether the session lies further in the future than clock skew explains.
pub(crate) fn is_future(made: u64) -> bool {
    made > since_epoch().as_secs() + AHEAD
}

/// Clock of a handshake.
#[derive(Debug, Default)]
pub(crate) struct SessionClock {
    at_least: Duration,
}

impl SessionClock {
    /// Polls the handshake. The effect of [`tolerate`] lasts for all following polls. (BoringSSL would issue an
    /// expired ticket for a session from the future.)
    pub(crate) fn turn<T>(&mut self, turn: impl FnOnce() -> T) -> T {
        AT_LEAST.set(self.at_least);
        let outcome = turn();
        self.at_least = AT_LEAST.replace(Duration::ZERO);
        outcome
    }
}

/// Runs a handshake with its own clock.
pub(crate) async fn own<F: Future>(handshake: F) -> F::Output {
    let mut handshake = pin!(handshake);
    let mut clock = SessionClock::default();
    poll_fn(|context| clock.turn(|| handshake.as_mut().poll(context))).await
}

/// Clock callback of BoringSSL. It does not panic.
unsafe extern "C" fn now(_: *const ffi::SSL, out: *mut ffi::timeval) {
    let now = since_epoch().max(AT_LEAST.get());
    // SAFETY: BoringSSL passes a valid pointer for the result.
    unsafe {
        (*out).tv_sec = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        (*out).tv_usec = i64::from(now.subsec_micros());
    }
}
