//! File descriptors: as many as the system allows, and some of them for more important things than new clients.

use crate::telemetry::paced::Paced;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
};

/// At most so many are kept from clients.
const MOST_RESERVED: RawFd = 4096;
/// At least so many, where there are twice as many.
const LEAST_RESERVED: RawFd = 32;
/// Up to so many, a quarter is reserved; beyond, a sixteenth, since each client may need a connection to a server too.
const ENOUGH: RawFd = 256;

/// Raises the soft limit to the hard one, which needs no privilege: the soft one is low for the sake of programs that
/// use `select`.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(?current, ?maximum, %error, "the limit of open files could not be raised");
    }
}

/// How many file descriptors clients may have.
///
/// The kernel gives the lowest number that is free, so that the number of a new descriptor tells how many are open:
/// nobody needs to count them.
pub(crate) struct Descriptors {
    /// From here on they are reserved for admin, reloads, and connections to servers.
    reserved_from: RawFd,
    /// What is duplicated to see which descriptor is free.
    probe: Option<File>,
    /// Of a shortage.
    pub(crate) warning: Paced,
}

impl Descriptors {
    /// Reserves a part of those that are left.
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.and_then(|limit| RawFd::try_from(limit).ok());
        let probe = File::open("/dev/null").ok();
        let lowest_free = probe.as_ref().and_then(lowest_free).unwrap_or(0);
        let reserved_from = reserved_from(lowest_free, limit.unwrap_or(RawFd::MAX));
        Self { reserved_from, probe, warning: Paced::default() }
    }

    /// Whether this one, which is new, is one of those that are reserved.
    pub(crate) fn is_reserved(&self, descriptor: &impl AsRawFd) -> bool {
        descriptor.as_raw_fd() >= self.reserved_from
    }

    /// Whether a client may have one more.
    pub(crate) fn are_free(&self) -> bool {
        let is_free = |probe| lowest_free(probe).is_some_and(|lowest| lowest < self.reserved_from);
        self.probe.as_ref().is_none_or(is_free)
    }
}

/// Whether an error says that there are no file descriptors left, in this process or on this machine.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn reserved_from(lowest_free: RawFd, limit: RawFd) -> RawFd {
    let free = limit.saturating_sub(lowest_free).max(0);
    let few = (free / 4).max(LEAST_RESERVED.min(free / 2)).min(ENOUGH);
    let reserve = few.max(free / 16).min(MOST_RESERVED);
    limit - reserve
}

/// `None` if none is.
fn lowest_free(probe: &File) -> Option<RawFd> {
    probe.try_clone().ok().map(|duplicate| duplicate.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_reserved() {
        assert_eq!(reserved_from(20, 1_048_576), 1_048_576 - 4096);
        assert_eq!(reserved_from(32, 20_000), 20_000 - 1248);
        assert_eq!(reserved_from(24, 1024), 1024 - 250);
        assert_eq!(reserved_from(20, 100), 100 - 32);
        assert_eq!(reserved_from(20, 60), 60 - 20, "half is for clients");
        assert_eq!(reserved_from(70, 60), 60);
    }
}
