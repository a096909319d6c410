//! The monitor of this process's memory: limit, samples, and the stage that follows from them.

use super::{
    anonymous::AnonymousMemory,
    available::available,
    holder::end_largest,
    meter::{Meter, Purpose},
    stage::Stage,
};
use quadrille_config::model::{MemoryLimit, MemorySize, MemoryStages};
use std::{
    sync::{
        LazyLock, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Interval between samples.
const SAMPLED_EVERY: Duration = Duration::from_millis(100);

/// Interval between samples while much of the limit is free: each wakes a thread, for some 0.1 ms of CPU time.
const SELDOM_SAMPLED_EVERY: Duration = Duration::from_millis(500);

/// Free memory that connections cannot fill between two seldom samples.
const MUCH: usize = 1 << 30;

/// Time after exchanges were ended until others may be: their memory must have been freed by then.
const EFFECT: Duration = Duration::from_millis(200);

/// Time for which requests are refused until exchanges are ended: others may be over by then.
const GRACE: Duration = Duration::from_secs(2);

/// Interval at which the allocator of the monitor's own thread releases memory while it is scarce.
const RELEASED_EVERY: Duration = Duration::from_secs(1);

const PARTS: u128 = 1_000_000;
const MIB: usize = 1 << 20;

/// Data held by this process.
pub(super) static METER: Meter = Meter::new();

static STATE: State = State {
    limit: AtomicUsize::new(usize::MAX),
    begins: Mutex::new(MemoryStages { scarce: 850_000, refusing: 950_000, full: 980_000 }),
    anonymous: AtomicUsize::new(0),
    held_then: AtomicUsize::new(0),
    stage: AtomicU8::new(Stage::Normal as u8),
    ended: AtomicU64::new(0),
};

/// Notifies of changes of the stage, and serializes them.
static STAGE: LazyLock<watch::Sender<Stage>> = LazyLock::new(watch::Sender::default);

/// Function that makes the allocator return the free memory of the calling thread to the kernel.
static ALLOCATOR: OnceLock<fn()> = OnceLock::new();

struct State {
    limit: AtomicUsize,
    begins: Mutex<MemoryStages>,
    /// Anonymous memory at the last sample.
    anonymous: AtomicUsize,
    /// Data that was held at the last sample.
    held_then: AtomicUsize,
    stage: AtomicU8,
    /// Number of exchanges that were ended.
    ended: AtomicU64,
}

/// Use of memory, for telemetry. Sizes are in bytes.
pub(crate) struct Usage {
    /// `None` without a limit.
    pub(crate) limit: Option<usize>,
    pub(crate) used: usize,
    pub(crate) stage: Stage,
    /// Data that is held, by purpose.
    pub(crate) held: Vec<(&'static str, usize)>,
    /// Number of exchanges that were ended.
    pub(crate) ended: u64,
}

/// Sets the function that makes the allocator return the free memory of the calling thread to the kernel.
pub(crate) fn set_allocator(release: fn()) {
    let _ = ALLOCATOR.set(release);
}

/// Makes the allocator return the free memory of this thread to the kernel.
pub(crate) fn release() {
    if let Some(release) = ALLOCATOR.get() {
        release();
    }
}

/// Returns a warning if more was configured than is available.
pub(crate) fn warning(limit: &MemoryLimit) -> Option<String> {
    let MemorySize::Bytes(bytes) = limit.size else { return None };
    let available = available().filter(|available| bytes.get() > *available)?;
    Some(format!(
        "limits.memory: the limit is {} MiB, but only {} MiB are available; write less, or a percentage such as `80%`",
        bytes.get() / MIB,
        available / MIB
    ))
}

/// Sets the limit.
pub(crate) fn limit_to(limit: &MemoryLimit) {
    let bytes = bytes(limit.size, available());
    *STATE.begins.lock().unwrap_or_else(PoisonError::into_inner) = limit.stages;
    STATE.limit.store(bytes, Ordering::Relaxed);
    decide();
}

/// Returns the limit in bytes; the maximum stands for no limit.
fn bytes(size: MemorySize, available: Option<usize>) -> usize {
    match (size, available) {
        (MemorySize::Bytes(bytes), _) => bytes.get(),
        (MemorySize::Share(parts), Some(available)) => {
            usize::try_from(available as u128 * u128::from(parts) / PARTS).unwrap_or(usize::MAX)
        }
        (MemorySize::Share(_), None) | (MemorySize::Unlimited, _) => usize::MAX,
    }
}

/// Returns the current stage.
pub(crate) fn stage() -> Stage {
    Stage::of(STATE.stage.load(Ordering::Relaxed))
}

/// Waits for a stage. Cancel safe.
pub(crate) async fn until(is_awaited: impl Fn(Stage) -> bool) {
    // The sender lives forever.
    let mut stages = STAGE.subscribe();
    drop(stages.wait_for(|stage| is_awaited(*stage)).await);
}

/// Returns the use of memory.
pub(crate) fn usage() -> Usage {
    let limit = Some(STATE.limit.load(Ordering::Relaxed)).filter(|limit| *limit < usize::MAX);
    let held = Purpose::ALL.map(|(purpose, name)| (name, METER.held(purpose))).into();
    Usage { limit, used: used(), stage: stage(), held, ended: STATE.ended.load(Ordering::Relaxed) }
}

/// Decides again, after data was added.
pub(super) fn grown() {
    decide();
}

/// Samples the memory of this process for as long as it runs.
pub(crate) async fn monitor() {
    let memory = match AnonymousMemory::open() {
        Ok(memory) => memory,
        Err(error) => return tracing::warn!(%error, "the memory of this process is unknown, and not limited"),
    };
    let (mut ended, mut released, mut refusing) = (None, None, None);
    loop {
        let now = Instant::now();
        if let Some(anonymous) = memory.read() {
            STATE.held_then.store(METER.total(), Ordering::Relaxed);
            STATE.anonymous.store(anonymous, Ordering::Relaxed);
        }
        decide();
        if stage() >= Stage::Scarce && is_due(released, now, RELEASED_EVERY) {
            released = Some(now);
            release();
        }
        refusing = (stage() >= Stage::Refusing).then(|| refusing.unwrap_or(now));
        let lasts = refusing.is_some_and(|since| is_due(Some(since), now, GRACE));
        if (lasts || stage() == Stage::Full) && is_due(ended, now, EFFECT) {
            ended = Some(now);
            end_exchanges();
        }
        tokio::time::sleep(interval(used(), STATE.limit.load(Ordering::Relaxed))).await;
    }
}

/// Returns the time until the next sample.
fn interval(used: usize, limit: usize) -> Duration {
    if (limit / 2).saturating_sub(used) >= MUCH { SELDOM_SAMPLED_EVERY } else { SAMPLED_EVERY }
}

fn is_due(before: Option<Instant>, now: Instant, interval: Duration) -> bool {
    before.is_none_or(|before| now.saturating_duration_since(before) >= interval)
}

/// Ends exchanges, so that the current stage ends.
fn end_exchanges() {
    let begins = *STATE.begins.lock().unwrap_or_else(PoisonError::into_inner);
    let excess = stage().excess(used(), STATE.limit.load(Ordering::Relaxed), &begins);
    let ended = end_largest(excess);
    if ended > 0 {
        STATE.ended.fetch_add(ended as u64, Ordering::Relaxed);
        tracing::warn!(ended, "memory: the requests that hold most were ended");
    }
}

/// Returns the memory in use: that of the last sample, and the growth of held data since.
fn used() -> usize {
    let growth = METER.total().saturating_sub(STATE.held_then.load(Ordering::Relaxed));
    STATE.anonymous.load(Ordering::Relaxed).saturating_add(growth)
}

fn decide() {
    let (used, limit) = (used(), STATE.limit.load(Ordering::Relaxed));
    let begins = *STATE.begins.lock().unwrap_or_else(PoisonError::into_inner);
    let mut before = Stage::Normal;
    let changed = STAGE.send_if_modified(|stage| {
        before = *stage;
        *stage = stage.next(used, limit, &begins);
        STATE.stage.store(*stage as u8, Ordering::Relaxed);
        *stage != before
    });
    if changed {
        log(before, stage(), used, limit);
    }
}

fn log(before: Stage, now: Stage, used: usize, limit: usize) {
    let (used_mib, limit_mib) = (used / MIB, limit / MIB);
    match now {
        Stage::Normal => tracing::info!(used_mib, limit_mib, "memory: no longer scarce"),
        _ if now < before => tracing::info!(used_mib, limit_mib, stage = ?now, "memory: less is used"),
        Stage::Scarce => tracing::warn!(
            used_mib,
            limit_mib,
            "memory is scarce: large requests are refused, idle connections closed"
        ),
        Stage::Refusing => tracing::warn!(used_mib, limit_mib, "memory is nearly full: requests are refused"),
        Stage::Full => tracing::warn!(used_mib, limit_mib, "memory is full: connections are not accepted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Held;
    use std::num::NonZeroUsize;

    #[test]
    fn limits_are_sizes_or_shares() {
        let size = |bytes| MemorySize::Bytes(NonZeroUsize::new(bytes).expect("a size"));
        for (limit, available, expected) in [
            (size(5), None, 5),
            (size(5), Some(3), 5),
            (MemorySize::default(), Some(1000 * MIB), 800 * MIB),
            (MemorySize::Share(1_000_000), Some(7), 7),
            (MemorySize::default(), None, usize::MAX),
            (MemorySize::Unlimited, Some(7), usize::MAX),
        ] {
            assert_eq!(bytes(limit, available), expected, "{limit:?} of {available:?}");
        }
    }

    #[test]
    fn samples_are_seldom_if_a_gibibyte_is_free_below_half_of_the_limit() {
        assert_eq!(interval(24, 2 * MUCH), SAMPLED_EVERY);
        assert_eq!(interval(24, 2 * MUCH + 48), SELDOM_SAMPLED_EVERY);
        assert_eq!(interval(1, usize::MAX), SELDOM_SAMPLED_EVERY);
        assert_eq!(interval(MUCH, 3 * MUCH), SAMPLED_EVERY);
    }

    /// Data that is held counts at once, and no longer when it is dropped.
    #[test]
    fn a_burst_is_noticed_between_two_samples() {
        let limit = |mib: usize| MemoryLimit {
            size: MemorySize::Bytes(NonZeroUsize::new(mib * MIB).expect("a size")),
            stages: MemoryStages::default(),
        };
        assert_eq!(warning(&limit(64)), None);
        assert!(warning(&limit(1 << 40)).is_some_and(|warning| warning.contains("available")));
        limit_to(&limit(100));
        assert_eq!(stage(), Stage::Normal);
        let mut held: Vec<_> = (0..90).map(|_| Held::bytes(Purpose::Unread, MIB)).collect();
        assert_eq!(stage(), Stage::Scarce);
        held.extend((0..9).map(|_| Held::bytes(Purpose::Mirror, MIB)));
        assert_eq!(stage(), Stage::Full);
        assert!(usage().held.contains(&("unread", 90 * MIB)) && usage().used == 99 * MIB);
        drop(held);
        decide();
        assert_eq!((stage(), usage().used), (Stage::Normal, 0));
        limit_to(&MemoryLimit { size: MemorySize::Unlimited, stages: MemoryStages::default() });
        assert_eq!(usage().limit, None);
    }
}
