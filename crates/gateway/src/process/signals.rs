//! Signals that a serving process obeys.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a serving process obeys.
pub(crate) struct Signals {
    pub(crate) hangup: Signal,
    /// Asks for log files to be opened anew.
    pub(crate) reopen: Signal,
    /// Asks for another process in the place of this one.
    pub(crate) replace: Signal,
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
}

impl Signals {
    /// Takes them over from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            reopen: signal(SignalKind::user_defined1())?,
            replace: signal(SignalKind::user_defined2())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}
