//! Contexts that OpenSSL holds during an operation, and creates, copies and frees. OpenSSL does not share contexts
//! between threads.

use crate::error::{Failure, Reason, guard, guard_pointer};

/// Allocates a context for OpenSSL.
pub(crate) fn new<T>(make: impl FnOnce() -> T) -> *mut T {
    guard_pointer(|| Ok(Box::into_raw(Box::new(make()))))
}

/// # Safety
/// `context` is null, or comes from [`new`] or [`dup`] and is freed once.
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
/// `context` is null or a live context.
pub(crate) unsafe extern "C" fn dup<T: Clone>(context: *const T) -> *mut T {
    // SAFETY: the caller's promise.
    guard_pointer(|| Ok(Box::into_raw(Box::new(unsafe { at(context) }?.clone()))))
}

/// # Safety
/// `context` is null or a live context.
pub(crate) unsafe fn at<'a, T>(context: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { context.as_ref() }.ok_or_else(|| Reason::Internal.into())
}

/// # Safety
/// `context` is null or a live context without other references.
pub(crate) unsafe fn at_mut<'a, T>(context: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { context.as_mut() }.ok_or_else(|| Reason::Internal.into())
}
