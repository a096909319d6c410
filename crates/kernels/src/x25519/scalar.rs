//! X25519 with BoringSSL, one operation at a time: for tiers without lanes, and as the oracle of the tests.

use super::{Agreement, X25519_BYTES};
use boring_sys as ffi;

pub(crate) fn agree(op: &mut Agreement<'_>) {
    // SAFETY: all three are 32 bytes long.
    let ok = unsafe { ffi::X25519(op.secret.as_mut_ptr(), op.scalar.as_ptr(), op.point.as_ptr()) };
    op.all_zero = ok != 1;
}

pub(crate) fn public_key(scalar: &[u8; X25519_BYTES], public_key: &mut [u8; X25519_BYTES]) {
    // SAFETY: both are 32 bytes long.
    unsafe { ffi::X25519_public_from_private(public_key.as_mut_ptr(), scalar.as_ptr()) };
}
