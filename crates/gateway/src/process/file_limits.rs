//! Limit on file descriptors: raised to the maximum, with a reserve that is not available to clients.

use crate::telemetry::rate_limited_log::Paced;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
};

/// Maximum reserve.
const MOST_RESERVED: RawFd = 4096;
/// Minimum reserve, if twice as many are available.
const LEAST_RESERVED: RawFd = 32;
/// Limit up to which a quarter is reserved, and beyond it a sixteenth, since each client may also need an upstream
/// connection.
const ENOUGH: RawFd = 256;

/// Raises the soft limit to the hard one, which needs no privilege: the soft one is low for programs that use
/// `select`.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(?current, ?maximum, %error, "cannot raise the limit of open files");
    }
}

/// Number of file descriptors available to clients.
///
/// The kernel assigns the lowest free number, so the number of a new descriptor indicates how many are open, without
/// a counter.
pub(crate) struct Descriptors {
    /// First descriptor that is reserved for admin, reloads, and upstream connections.
    reserved_from: RawFd,
    /// Descriptor that is duplicated to find the lowest free one.
    probe: Option<File>,
    /// Rate limit of the warning about a shortage.
    pub(crate) warning: Paced,
}

impl Descriptors {
    /// Reserves a part of the available descriptors.
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.and_then(|limit| RawFd::try_from(limit).ok());
        let probe = File::open("/dev/null").ok();
        let lowest_free = probe.as_ref().and_then(lowest_free).unwrap_or(0);
        let reserved_from = reserved_from(lowest_free, limit.unwrap_or(RawFd::MAX));
        Self { reserved_from, probe, warning: Paced::default() }
    }

    /// Returns whether a new descriptor is in the reserve.
    pub(crate) fn is_reserved(&self, descriptor: &impl AsRawFd) -> bool {
        descriptor.as_raw_fd() >= self.reserved_from
    }

    /// Returns whether a descriptor is available for another client.
    pub(crate) fn are_free(&self) -> bool {
        let is_free = |probe| lowest_free(probe).is_some_and(|lowest| lowest < self.reserved_from);
        self.probe.as_ref().is_none_or(is_free)
    }
}

/// Returns whether an error is caused by a lack of file descriptors, in this process or on this machine.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn reserved_from(lowest_free: RawFd, limit: RawFd) -> RawFd {
    let free = limit.saturating_sub(lowest_free).max(0);
    let few = (free / 4).max(LEAST_RESERVED.min(free / 2)).min(ENOUGH);
    let reserve = few.max(free / 16).min(MOST_RESERVED);
    limit - reserve
}

/// Returns the lowest free descriptor, if there is one.
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
