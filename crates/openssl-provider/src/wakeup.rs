//! How a server learns that the result of a paused job is there: by a descriptor, or by a function that it has left in
//! the wait context (`ASYNC_WAIT_CTX_set_callback(3)`), which costs no system call and no descriptor.

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

/// One for each wait context.
pub(crate) enum Wakeup {
    Descriptor(Signal),
    /// `None` once the server has freed the context.
    Callback(Mutex<Option<Call>>),
}

/// A function of the server, and what it wants to be given.
pub(crate) struct Call {
    function: Callback,
    argument: *mut c_void,
}

// SAFETY: a server that leaves a function in a wait context expects it to be called by any thread.
unsafe impl Send for Call {}

impl Wakeup {
    /// As the server wants it for this context.
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

    /// The server may have left another function since.
    ///
    /// # Safety
    /// `context` is the live wait context that this was made for.
    pub(crate) unsafe fn update(&self, host: &Async, context: *mut c_void) {
        if let Self::Callback(call) = self {
            // SAFETY: the caller's promise.
            *locked(call) = unsafe { Call::of(host, context) };
        }
    }

    /// -1 if there is none.
    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Self::Descriptor(signal) => signal.fd(),
            Self::Callback(_) => -1,
        }
    }

    /// Seen: it is not to wake the server once more.
    pub(crate) fn clear(&self) {
        if let Self::Descriptor(signal) = self {
            signal.clear();
        }
    }

    /// The context is gone, and with it perhaps what the function wants. Returns when nobody is in it.
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
                    // SAFETY: the server has left it for this, and the context is there: see `disconnect`.
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
        // SAFETY: the caller's promise, and places for the answers.
        let known: c_int = unsafe { host.get_callback?(context, &mut function, &mut argument) };
        let function = function.filter(|_| known == 1)?;
        Some(Self { function, argument })
    }
}

fn locked(call: &Mutex<Option<Call>>) -> MutexGuard<'_, Option<Call>> {
    call.lock().unwrap_or_else(PoisonError::into_inner)
}
