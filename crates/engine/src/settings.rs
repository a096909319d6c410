//! Engine settings.

use crate::Policy;
use std::num::NonZeroUsize;

/// Engine settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Batching policy.
    pub policy: Policy,
    /// Number of compute threads.
    pub threads: NonZeroUsize,
    /// Number of times that a compute thread that cannot fill a pass yields its CPU before it takes the available
    /// operations: the thread that gets the CPU is most probably an event loop that brings more. If no thread wants
    /// the CPU, a yield costs a microsecond.
    pub yields: u8,
    /// Number of operations that may wait, in all queues together, before new ones are rejected.
    pub capacity: NonZeroUsize,
    /// Whether the engine computes the key exchange of handshakes.
    pub key_exchange: bool,
}

impl Settings {
    /// Default of `yields`: passes are nearly full beside an event loop on the same CPU; more gain nothing.
    pub const YIELDS: u8 = 3;
}
