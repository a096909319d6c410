//! The count of data that is held in memory, by purpose. Each thread counts in a shard, so that threads do not contend.

use std::{
    cell::Cell,
    sync::atomic::{AtomicIsize, AtomicUsize, Ordering},
};

/// Purpose for which data is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The beginning of a request body, for a retry.
    Retry,
    /// The beginning of a request body, for an access step.
    Inspection,
    /// A request body, for a mirror.
    Mirror,
    /// A request body that an HTTP/2 server has not read.
    Upload,
    /// Data of HTTP/2 streams that is unread.
    Unread,
    /// Data of responses that clients have no room for.
    Unsent,
    /// State of encoders.
    Compression,
    /// Buffers of connections.
    Buffers,
}

impl Purpose {
    /// All purposes, with their names in the metrics.
    pub(super) const ALL: [(Self, &'static str); PURPOSES] = [
        (Self::Retry, "retry"),
        (Self::Inspection, "inspection"),
        (Self::Mirror, "mirror"),
        (Self::Upload, "upload"),
        (Self::Unread, "unread"),
        (Self::Unsent, "unsent"),
        (Self::Compression, "compression"),
        (Self::Buffers, "buffers"),
    ];
}

const PURPOSES: usize = 8;

/// Number of shards; threads beyond it share them.
const SHARDS: usize = 32;

/// Growth of a thread's data that is reported before the next sample.
const NOTABLE: usize = 256 * 1024;

/// Counts of one thread, in cache lines of their own.
#[repr(align(128))]
struct Shard([AtomicIsize; PURPOSES]);

/// Counts of a process.
pub(super) struct Meter([Shard; SHARDS]);

thread_local! {
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
    /// Bytes that this thread has added since the last report.
    static ADDED: Cell<usize> = const { Cell::new(0) };
}

impl Meter {
    pub(super) const fn new() -> Self {
        Self([const { Shard([const { AtomicIsize::new(0) }; PURPOSES]) }; SHARDS])
    }

    /// Changes a count from `before` to `now` bytes. Returns whether this thread has added much since it last did.
    pub(super) fn change(&self, purpose: Purpose, before: usize, now: usize) -> bool {
        // A thread that ends counts in the first shard.
        let shard = SHARD.try_with(|shard| *shard).unwrap_or(0);
        // Sizes in memory fit.
        let difference = now.wrapping_sub(before) as isize;
        self.0[shard].0[purpose as usize].fetch_add(difference, Ordering::Relaxed);
        now > before && added_much(now - before)
    }

    /// Returns the number of bytes that are held for a purpose.
    pub(super) fn held(&self, purpose: Purpose) -> usize {
        let count = |shard: &Shard| shard.0[purpose as usize].load(Ordering::Relaxed);
        // A shard may be negative if data moved between threads, and the sum for a moment.
        usize::try_from(self.0.iter().map(count).sum::<isize>()).unwrap_or(0)
    }

    /// Returns the number of bytes that are held for all purposes.
    pub(super) fn total(&self) -> usize {
        Purpose::ALL.iter().map(|(purpose, _)| self.held(*purpose)).sum()
    }
}

fn added_much(bytes: usize) -> bool {
    let added = |added: &Cell<usize>| {
        let sum = added.get() + bytes;
        added.set(if sum >= NOTABLE { 0 } else { sum });
        sum >= NOTABLE
    };
    ADDED.try_with(added).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn purposes_are_listed_in_their_order() {
        for (index, (purpose, _)) in Purpose::ALL.iter().enumerate() {
            assert_eq!(*purpose as usize, index);
        }
    }

    #[test]
    fn data_may_move_between_threads() {
        static METER: Meter = Meter::new();
        METER.change(Purpose::Mirror, 0, 1000);
        thread::spawn(|| METER.change(Purpose::Mirror, 1000, 300)).join().expect("a thread");
        assert_eq!((METER.held(Purpose::Mirror), METER.held(Purpose::Retry), METER.total()), (300, 0, 300));
        METER.change(Purpose::Mirror, 300, 0);
        assert_eq!(METER.total(), 0);
    }

    #[test]
    fn growth_is_reported_once_it_is_notable() {
        let meter = Meter::new();
        let reports = (0..512).filter(|_| meter.change(Purpose::Retry, 0, 1024)).count();
        assert_eq!(reports, 2);
        assert!(!meter.change(Purpose::Retry, 512 * 1024, 0), "no growth");
    }
}
