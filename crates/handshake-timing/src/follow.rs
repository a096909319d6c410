//! BoringSSL callbacks of one connection that take the marks.
//!
//! They are set on the connection, not on its context, so that unmeasured connections pay nothing.

use crate::{
    marks::{Mark, mark},
    message::built,
};
use boring::ssl::SslRef;
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use std::{
    ffi::{CStr, c_int, c_void},
    slice,
};

/// Takes marks in the handshake of this connection, client or server, during a [turn](crate::Marks::turn).
pub fn follow(ssl: &mut SslRef) {
    // SAFETY: the connection is live; both callbacks have the required types and live forever.
    unsafe {
        ffi::SSL_set_info_callback(ssl.as_ptr(), Some(state_changed));
        ffi::SSL_set_msg_callback(ssl.as_ptr(), Some(message_passed));
    }
}

/// Removes the callbacks set by [`follow`].
pub fn unfollow(ssl: &mut SslRef) {
    // SAFETY: the connection is live, and no callback is allowed.
    unsafe {
        ffi::SSL_set_info_callback(ssl.as_ptr(), None);
        ffi::SSL_set_msg_callback(ssl.as_ptr(), None);
    }
}

/// Returns whether [`follow`] is in force for this connection.
pub fn is_followed(ssl: &SslRef) -> bool {
    // SAFETY: the connection is live.
    unsafe { ffi::SSL_get_info_callback(ssl.as_ptr()) }.is_some()
}

/// Called when the handshake has entered another state. It must not panic.
unsafe extern "C" fn state_changed(ssl: *const ffi::SSL, kind: c_int, _value: c_int) {
    if kind != ffi::SSL_CB_ACCEPT_LOOP as c_int && kind != ffi::SSL_CB_CONNECT_LOOP as c_int {
        return;
    }
    // SAFETY: BoringSSL passes a live connection.
    let name = unsafe { ffi::SSL_state_string_long(ssl) };
    if !name.is_null() {
        // SAFETY: the names of states are static strings terminated by a zero byte.
        let name: &'static CStr = unsafe { CStr::from_ptr(name) };
        mark(Mark::State(name.to_str().unwrap_or_default()));
    }
}

/// Called for each message sent or received. It must not panic.
unsafe extern "C" fn message_passed(
    is_write: c_int,
    _version: c_int,
    content_type: c_int,
    bytes: *const c_void,
    len: usize,
    ssl: *mut ffi::SSL,
    _arg: *mut c_void,
) {
    const HANDSHAKE: c_int = 22;
    if is_write == 1 && content_type == HANDSHAKE && len > 0 && !bytes.is_null() {
        // SAFETY: BoringSSL passes `len` readable bytes.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), len) };
        // SAFETY: BoringSSL passes a live connection.
        let by_server = unsafe { ffi::SSL_is_server(ssl) } == 1;
        mark(Mark::Built(built(bytes[0], by_server)));
    }
}
