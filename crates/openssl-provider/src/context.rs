//! What OpenSSL holds of ours while it computes something: made, copied and freed when it says so. OpenSSL's contexts
//! are not shared between threads.

use crate::error::{Failure, Reason, guard, guard_pointer};

/// A new one, for OpenSSL.
pub(crate) fn new<T>(make: impl FnOnce() -> T) -> *mut T {
    guard_pointer(|| Ok(Box::into_raw(Box::new(make()))))
}

/// # Safety
/// It is null, or comes from [`new`] or [`dup`] and is freed once.
pub(crate) unsafe extern "C" fn free<T>(context: *mut T) {
    guard(|| {
        if !context.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(context) });
        }
        Ok(())
    });
}

/// # Safety
/// It is null or a live context.
pub(crate) unsafe extern "C" fn dup<T: Clone>(context: *const T) -> *mut T {
    // SAFETY: the caller's promise.
    guard_pointer(|| Ok(Box::into_raw(Box::new(unsafe { at(context) }?.clone()))))
}

/// # Safety
/// It is null or a live context.
pub(crate) unsafe fn at<'a, T>(context: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { context.as_ref() }.ok_or_else(|| Reason::Internal.into())
}

/// # Safety
/// It is null or a live context that nobody else uses.
pub(crate) unsafe fn at_mut<'a, T>(context: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { context.as_mut() }.ok_or_else(|| Reason::Internal.into())
}
