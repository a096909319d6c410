//! Interface for modules of the same server, for instance nginx's: functions in the provider's dispatch table
//! (`OSSL_PROVIDER_get0_dispatch(3)`) under numbers of our own, which OpenSSL ignores. The C side is
//! `nginx-module/src/quadrille_provider.h`.

use crate::{
    batches::{self, Totals},
    compute, key_exchange,
};
use std::{ffi::c_uint, num::NonZeroUsize};

/// Function numbers. The meaning of a number never changes; a changed function gets a new number.
pub(crate) mod number {
    use std::ffi::c_int;

    pub(crate) const SET_THREADS: c_int = 0x0051_4401;
    pub(crate) const TOTALS: c_int = 0x0051_4402;
    pub(crate) const TAKE_LAST_BATCH: c_int = 0x0051_4403;
    pub(crate) const COMPUTE_TURN: c_int = 0x0051_4404;
}

/// `void (unsigned count)`: sets the number of compute threads, if the engine has not started and openssl.cnf does
/// not set it.
pub(crate) extern "C" fn set_threads(count: c_uint) {
    if let Some(count) = NonZeroUsize::new(count as usize) {
        compute::propose_threads(count);
    }
}

/// `void (struct quadrille_totals *totals)`.
///
/// # Safety
/// `totals` is null or points to writable memory.
pub(crate) unsafe extern "C" fn totals(totals: *mut Totals) {
    // SAFETY: the caller's promise.
    if let Some(totals) = unsafe { totals.as_mut() } {
        *totals = batches::totals();
    }
}

/// `unsigned (void)`: returns the size of the batch in which the last operation of this thread was computed. 0 if
/// there was no operation since the last call, or a key server computed it.
pub(crate) extern "C" fn take_last_batch() -> c_uint {
    batches::take_last()
}

/// `void (void)`: computes the operations submitted by handshakes of this thread. After the first call, key exchange
/// of handshakes in jobs is submitted: the function in the wait context is called, and the job is paused until the
/// next call.
pub(crate) extern "C" fn compute_turn() {
    let _ = std::panic::catch_unwind(key_exchange::compute_turn);
}
