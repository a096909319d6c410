//! Limit on the memory of the process.

use std::num::NonZeroUsize;

/// Limit on the memory of the process, with the measures as it is approached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryLimit {
    /// The limit itself.
    pub size: MemorySize,
    /// The use at which measures begin.
    pub stages: MemoryStages,
}

/// Maximum memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySize {
    /// No limit.
    Unlimited,
    /// This number of bytes.
    Bytes(NonZeroUsize),
    /// A share of the memory of the control group, or else of the machine, in parts per million.
    Share(u32),
}

/// Use of memory at which measures begin, in parts per million of the limit. A stage includes the measures of those
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryStages {
    /// Memory is freed, idle connections are closed, and large new uses of memory are avoided or refused.
    pub scarce: u32,
    /// Requests are refused, and the exchanges that hold most are ended if that lasts.
    pub refusing: u32,
    /// Connections are not accepted, and the exchanges that hold most are ended at once.
    pub full: u32,
}

/// One percent in parts per million.
const PERCENT: u32 = 10_000;

impl Default for MemorySize {
    fn default() -> Self {
        Self::Share(80 * PERCENT)
    }
}

impl Default for MemoryStages {
    fn default() -> Self {
        Self { scarce: 85 * PERCENT, refusing: 95 * PERCENT, full: 98 * PERCENT }
    }
}
