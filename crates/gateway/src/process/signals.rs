//! Signals that a serving process handles.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers of the signals.
pub(crate) struct Signals {
    pub(crate) hangup: Signal,
    /// Reopens log files.
    pub(crate) reopen: Signal,
    /// Starts a successor process.
    pub(crate) replace: Signal,
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
}

impl Signals {
    /// Installs the handlers.
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
