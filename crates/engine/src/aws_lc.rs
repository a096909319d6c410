//! What all uses of AWS-LC have in common.

use aws_lc_sys as ffi;

/// Nothing, after a call that failed: its reasons would stay in the thread's error queue.
pub(crate) fn forget_errors<T>() -> Option<T> {
    // SAFETY: no preconditions.
    unsafe { ffi::ERR_clear_error() };
    None
}
