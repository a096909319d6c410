//! What a module of the same server may ask of the provider, for instance nginx's: functions in the provider's dispatch
//! table (`OSSL_PROVIDER_get0_dispatch(3)`), under numbers of our own, which OpenSSL passes over. The C side is
//! `nginx-module/src/quadrille_provider.h`.

use crate::{
    batches::{self, Totals},
    compute, key_exchange,
};
use std::{ffi::c_uint, num::NonZeroUsize};

/// The numbers. What a function does never changes; another one gets another number.
pub(crate) mod number {
    use std::ffi::c_int;

    pub(crate) const SET_THREADS: c_int = 0x0051_4401;
    pub(crate) const TOTALS: c_int = 0x0051_4402;
    pub(crate) const TAKE_LAST_BATCH: c_int = 0x0051_4403;
    pub(crate) const COMPUTE_TURN: c_int = 0x0051_4404;
}

/// `void (unsigned count)`: how many compute threads the engine will have, if it has not begun and openssl.cnf does not
/// say it.
pub(crate) extern "C" fn set_threads(count: c_uint) {
    if let Some(count) = NonZeroUsize::new(count as usize) {
        compute::propose_threads(count);
    }
}

/// `void (struct quadrille_totals *totals)`.
///
/// # Safety
/// `totals` is null or the place for the answer.
pub(crate) unsafe extern "C" fn totals(totals: *mut Totals) {
    // SAFETY: the caller's promise.
    if let Some(totals) = unsafe { totals.as_mut() } {
        *totals = batches::totals();
    }
}

/// `unsigned (void)`: how many operations were in the batch that the last one of this thread was computed in. 0 if
/// there was none since it was last asked, or a key server has computed it.
pub(crate) extern "C" fn take_last_batch() -> c_uint {
    batches::take_last()
}

/// `void (void)`: computes what handshakes of this thread have handed in. Once it has been called, key exchange of
/// handshakes in jobs is handed in: the function in the wait context is called, and the job is paused until the next call.
pub(crate) extern "C" fn compute_turn() {
    let _ = std::panic::catch_unwind(key_exchange::compute_turn);
}
