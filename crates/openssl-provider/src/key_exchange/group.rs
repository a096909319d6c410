//! The group in TLS (`provider-base(7)`, capability `TLS-GROUP`). libssl takes a group's key management only from the
//! provider that has the group.

use crate::{
    abi::Callback,
    error::{Failure, guard},
    params::Builder,
};
use std::ffi::{CStr, c_char, c_int, c_void};

const X25519: u32 = 0x001d;
const SECURITY_BITS: u32 = 128;
const TLS_1_0: i32 = 0x0301;
const DTLS_1_0: i32 = 0xfeff;
const NO_LIMIT: i32 = 0;

pub(crate) unsafe extern "C" fn capabilities(
    _provider: *mut c_void,
    capability: *const c_char,
    callback: Callback,
    argument: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes a C string.
        if capability.is_null() || unsafe { CStr::from_ptr(capability) } != c"TLS-GROUP" {
            return Ok(());
        }
        let group = Builder::default()
            .text(c"tls-group-name", c"x25519")
            .text(c"tls-group-name-internal", c"X25519")
            .large(c"tls-group-id", &X25519.to_be_bytes())
            .text(c"tls-group-alg", c"X25519")
            .large(c"tls-group-sec-bits", &SECURITY_BITS.to_be_bytes())
            .integer(c"tls-min-tls", TLS_1_0)
            .integer(c"tls-max-tls", NO_LIMIT)
            .integer(c"tls-min-dtls", DTLS_1_0)
            .integer(c"tls-max-dtls", NO_LIMIT);
        // SAFETY: it is OpenSSL's, with the argument that belongs to it.
        let taken = group.with(|params| unsafe { callback(params, argument) });
        if taken == 1 { Ok(()) } else { Err(Failure::quiet()) }
    })
}
