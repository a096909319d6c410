//! Memory as an accounted resource: a limit for the whole process, and the measures as it is approached.
//!
//! ```text
//!  anonymous memory, sampled ──┐
//!  (/proc, every 100 ms)       ├─> used ─┐
//!  growth of held data since ──┘         ├─> stage ──> requests, connections, buffers, the allocator
//!  (guards)           limit, thresholds ─┘
//! ```
//!
//! The process's anonymous memory decides, because it includes what no count knows: libraries, fragments, metadata.
//! Memory of files is not included, since the kernel can reclaim it. Between two samples, data that guards have begun
//! to hold is added, so that a burst is noticed before the next sample.
//!
//! | stage | begins at | measures, in addition to those of the stages before |
//! |---|---:|---|
//! | `Normal` | | none |
//! | `Scarce` | 85 % | the allocator returns free memory; the longest-idle connections close; bodies are not kept for retries, mirrored or compressed; new HTTP/2 connections get smaller windows; large request bodies are refused |
//! | `Refusing` | 95 % | new requests are refused; after two seconds, the exchanges that hold most are ended |
//! | `Full` | 98 % | connections are not accepted; the exchanges that hold most are ended at once |
//!
//! A stage ends when the use is five percent of the limit beneath its threshold. The admin address and health checks
//! are not affected.
//!
//! - `stage`: the decision, as a pure function; `monitor`: samples, limit and stage of a process.
//! - `meter`, `held`: the count of held data, by purpose, and its guards.
//! - `holder`: the data that one exchange holds, and the choice of exchanges that are ended.
//! - `anonymous`, `available`: the process's memory, and that of its control group or machine.

mod anonymous;
mod available;
mod held;
mod holder;
mod meter;
mod monitor;
mod stage;

pub(crate) use held::{Held, count};
pub(crate) use holder::{Endable, Holder};
pub(crate) use meter::Purpose;
pub(crate) use monitor::{Usage, limit_to, monitor, release, set_allocator, stage, until, usage, warning};
pub(crate) use stage::Stage;

/// Returns whether large new uses of memory are to be avoided.
pub(crate) fn is_scarce() -> bool {
    stage() >= Stage::Scarce
}
