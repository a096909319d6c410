//! Notification of a server that the result of a paused job is ready: by a descriptor, or by a function that it
//! stored in the wait context (`ASYNC_WAIT_CTX_set_callback(3)`), which costs no system call and no descriptor.

use crate::{
    host::{Async, Callback},
    signal::Signal,
};
use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::RawFd,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Wake,
};

/// The notification of one wait context.
pub(crate) enum Wakeup {
    Descriptor(Signal),
    /// `None` once the server has freed the context.
    Callback(Mutex<Option<Call>>),
}

/// A function of the server, with its argument.
pub(crate) struct Call {
    function: Callback,
    argument: *mut c_void,
}

// SAFETY: a server that stores a function in a wait context expects calls from any thread.
unsafe impl Send for Call {}

impl Wakeup {
    /// Uses the function in the context if there is one, and a descriptor otherwise.
    ///
    /// # Safety
    /// `context` is a live wait context.
    pub(crate) unsafe fn new(host: &Async, context: *mut c_void) -> io::Result<Self> {
        // SAFETY: the caller's promise.
        match unsafe { Call::of(host, context) } {
            Some(call) => Ok(Self::Callback(Mutex::new(Some(call)))),
            None => Signal::new().map(Self::Descriptor),
        }
    }

    /// Reloads the function, which the server may have replaced.
    ///
    /// # Safety
    /// `context` is the live wait context that this was created for.
    pub(crate) unsafe fn update(&self, host: &Async, context: *mut c_void) {
        if let Self::Callback(call) = self {
            // SAFETY: the caller's promise.
            *locked(call) = unsafe { Call::of(host, context) };
        }
    }

    /// Returns the descriptor; -1 for a function.
    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Self::Descriptor(signal) => signal.fd(),
            Self::Callback(_) => -1,
        }
    }

    /// Clears the signal: it must not wake the server once more.
    pub(crate) fn clear(&self) {
        if let Self::Descriptor(signal) = self {
            signal.clear();
        }
    }

    /// Detaches from the freed context, and perhaps from the function's argument. Returns when no call of the
    /// function is in progress.
    pub(crate) fn disconnect(&self) {
        if let Self::Callback(call) = self {
            *locked(call) = None;
        }
    }
}

impl Wake for Wakeup {
    fn wake(self: std::sync::Arc<Self>) {
        match &*self {
            Self::Descriptor(signal) => signal.set(),
            Self::Callback(call) => {
                if let Some(call) = &*locked(call) {
                    // SAFETY: the server stored it for this purpose, and the context is alive: see `disconnect`.
                    unsafe { (call.function)(call.argument) };
                }
            }
        }
    }
}

impl Call {
    /// # Safety
    /// `context` is a live wait context.
    unsafe fn of(host: &Async, context: *mut c_void) -> Option<Self> {
        let (mut function, mut argument): (Option<Callback>, _) = (None, std::ptr::null_mut());
        // SAFETY: the caller's promise, and the outputs are writable.
        let known: c_int = unsafe { host.get_callback?(context, &mut function, &mut argument) };
        let function = function.filter(|_| known == 1)?;
        Some(Self { function, argument })
    }
}

fn locked(call: &Mutex<Option<Call>>) -> MutexGuard<'_, Option<Call>> {
    call.lock().unwrap_or_else(PoisonError::into_inner)
}
