//! A descriptor that becomes readable when it is signalled.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsRawFd, FromRawFd, RawFd},
};

/// An eventfd.
pub(crate) struct Signal(File);

impl Signal {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: eventfd has no preconditions.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is a new descriptor without other owners.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(crate) fn set(&self) {
        // The write fails only if the counter is full, and then the descriptor is readable.
        let _ = (&self.0).write(&1_u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}
