//! Early data (0-RTT): what a client sends with a ticket's first use, before it has proved that it is there.
//!
//! Somebody who has copied a first flight can send it again. So it counts once: the store is asked, before BoringSSL
//! looks at the ticket (`before_selection`), whether this is its first use, and everybody else completes the handshake first. What has come
//! early is marked as such until the handshake is complete ([`in_progress`]).

use super::handshake_state::ResumptionState;
use boring::ssl::{SslContextBuilder, SslRef};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

/// Lets a context's connections bring early data, and its tickets allow it.
pub(super) fn allow(builder: &mut SslContextBuilder) {
    // SAFETY: the context is live; this sets a flag on it.
    unsafe { ffi::SSL_CTX_set_early_data_enabled(builder.as_ptr(), 1) };
}

/// Whether early data was accepted, after the handshake; `None` if the client offered none.
pub(crate) fn accepted(ssl: &SslRef) -> Option<bool> {
    ResumptionState::attached(ssl)?.early.get().map(|()| in_progress(ssl))
}

/// Whether what is read now came early_data, and may be a copy.
pub(crate) fn in_progress(ssl: &SslRef) -> bool {
    // SAFETY: the connection is live.
    unsafe { ffi::SSL_in_early_data(ssl.as_ptr()) == 1 }
}

/// Has this connection's client complete the handshake first.
pub(super) fn refuse(ssl: &mut SslRef) {
    // SAFETY: the connection is live; this sets a flag on it.
    unsafe { ffi::SSL_set_early_data_enabled(ssl.as_ptr(), 0) };
}
