//! AWS-LC helpers shared by all callers.

use aws_lc_sys as ffi;

/// Clears the thread's error queue after a failed call and returns `None`; otherwise the errors would stay queued.
pub(crate) fn forget_errors<T>() -> Option<T> {
    // SAFETY: no preconditions.
    unsafe { ffi::ERR_clear_error() };
    None
}
