//! CPU time of the calling thread: what others do meanwhile does not count.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// What asking for the time costs: the least of many times.
pub(crate) fn cost() -> Duration {
    let once = || {
        let began = thread_time();
        thread_time().saturating_sub(began)
    };
    (0..1000).map(|_| once()).min().unwrap_or_default()
}

/// The middle value; of an even number, the greater of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
