//! Signals that a serving process obeys.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a serving process obeys.
pub(crate) struct Signals {
    pub(crate) hangup: Signal,
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
}

impl Signals {
    /// Takes them over from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}
