//! How an engine is set up.

use crate::Policy;
use std::num::NonZeroUsize;

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When batches go.
    pub policy: Policy,
    /// Compute threads.
    pub threads: NonZeroUsize,
    /// How often a compute thread that cannot fill a pass yields its CPU before it takes what there is: whoever wants
    /// the CPU is most probably an event loop that brings more. Where nobody wants it, a yield costs a microsecond.
    pub yields: u8,
    /// Operations that may wait, in all queues together, before new ones are refused.
    pub capacity: NonZeroUsize,
    /// Whether the key exchange of handshakes is to be computed here.
    pub key_exchange: bool,
}

impl Settings {
    /// Beside an event loop on the same CPU, passes are nearly full with this many; more bring nothing.
    pub const YIELDS: u8 = 3;
}
