//! Alerts by which the gateway ends a handshake (RFC 8446 section 6.2).

use crate::tls::handshake_state::HandshakeState;
use boring::{error::ErrorStack, ssl::SslRef};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

/// An alert, by its code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alert {
    /// The failure is not the client's.
    InternalError = 80,
    /// There is no certificate or filter chain for the name.
    UnrecognizedName = 112,
    /// The chain of the name does not support the client's protocols.
    NoApplicationProtocol = 120,
}

/// Sends an alert that ends the handshake. Called in BoringSSL's callbacks only, where the connection can be written to.
pub(crate) fn send_alert(ssl: &SslRef, alert: Alert) {
    if let (Alert::UnrecognizedName, Some(state)) = (alert, HandshakeState::attached(ssl)) {
        let _ = state.unknown_name.set(());
    }
    // SAFETY: the connection is live and in its handshake, where BoringSSL sends alerts itself.
    unsafe { ffi::SSL_send_fatal_alert(ssl.as_ptr(), alert as u8) };
    // The result of sending is irrelevant, and must not remain in the thread's error queue.
    drop(ErrorStack::get());
}
