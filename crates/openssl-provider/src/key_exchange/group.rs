//! TLS groups (`provider-base(7)`, capability `TLS-GROUP`). libssl takes a group's key management only from the
//! provider that has the group.

use super::{group_key::GroupKey, hybrid::HybridKey, x25519::X25519Key};
use crate::{
    abi::Callback,
    error::{Failure, guard},
    params::Builder,
};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Description of a group for libssl.
struct Group {
    /// Name in configurations (IANA).
    name: &'static CStr,
    /// Name of its key management.
    algorithm: &'static CStr,
    id: u32,
    security_bits: u32,
    min_tls: i32,
    min_dtls: i32,
    /// Whether the server encapsulates a secret instead of sending a public key of its own.
    is_kem: i32,
}

const GROUPS: [Group; 2] = [
    Group {
        name: c"x25519",
        algorithm: X25519Key::NAME,
        id: 0x001d,
        security_bits: 128,
        min_tls: TLS_1_0,
        min_dtls: DTLS_1_0,
        is_kem: 0,
    },
    Group {
        name: c"X25519MLKEM768",
        algorithm: HybridKey::NAME,
        id: 0x11ec,
        security_bits: 192,
        min_tls: TLS_1_3,
        min_dtls: NEVER,
        is_kem: 1,
    },
];

const TLS_1_0: i32 = 0x0301;
const TLS_1_3: i32 = 0x0304;
const DTLS_1_0: i32 = 0xfeff;
const NO_LIMIT: i32 = 0;
const NEVER: i32 = -1;

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
        for group in &GROUPS {
            // SAFETY: the callback is OpenSSL's, and is called with its argument.
            let taken = group.described().with(|params| unsafe { callback(params, argument) });
            if taken != 1 {
                return Err(Failure::quiet());
            }
        }
        Ok(())
    })
}

impl Group {
    fn described(&self) -> Builder {
        let max_dtls = if self.min_dtls == NEVER { NEVER } else { NO_LIMIT };
        Builder::default()
            .text(c"tls-group-name", self.name)
            .text(c"tls-group-name-internal", self.algorithm)
            .large(c"tls-group-id", &self.id.to_be_bytes())
            .text(c"tls-group-alg", self.algorithm)
            .large(c"tls-group-sec-bits", &self.security_bits.to_be_bytes())
            .integer(c"tls-min-tls", self.min_tls)
            .integer(c"tls-max-tls", NO_LIMIT)
            .integer(c"tls-min-dtls", self.min_dtls)
            .integer(c"tls-max-dtls", max_dtls)
            .integer(c"tls-group-is-kem", self.is_kem)
    }
}
