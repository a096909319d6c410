//! Early data (0-RTT): data that a client sends with a ticket's first use, before it has proved liveness.
//!
//! An attacker can replay a recorded first flight, so early data is accepted once per ticket. The store is queried
//! before BoringSSL reads the ticket (`before_selection`); unless it is the first use, the client has to complete the
//! handshake first. Early data is marked as such until the handshake is complete ([`in_progress`]).

use crate::tls::handshake_state::ResumptionState;
use boring::ssl::{SslContextBuilder, SslRef};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

/// Enables early data on a context's connections and tickets.
pub(crate) fn allow(builder: &mut SslContextBuilder) {
    // SAFETY: the context is live; this sets a flag on it.
    unsafe { ffi::SSL_CTX_set_early_data_enabled(builder.as_ptr(), 1) };
}

/// Returns whether early data was accepted, after the handshake; `None` if the client offered none.
pub(crate) fn accepted(ssl: &SslRef) -> Option<bool> {
    ResumptionState::attached(ssl)?.early.get().map(|()| in_progress(ssl))
}

/// Returns whether the data read now is early data, and may be replayed.
pub(crate) fn in_progress(ssl: &SslRef) -> bool {
    // SAFETY: the connection is live.
    unsafe { ffi::SSL_in_early_data(ssl.as_ptr()) == 1 }
}

/// Rejects early data, so that the client completes the handshake first.
pub(crate) fn refuse(ssl: &mut SslRef) {
    // SAFETY: the connection is live; this sets a flag on it.
    unsafe { ffi::SSL_set_early_data_enabled(ssl.as_ptr(), 0) };
}
