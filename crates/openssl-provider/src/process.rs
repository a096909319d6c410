//! What each process has for itself. Servers read their keys, and then fork: threads stay behind, and a lock that one
//! of them held stays locked. So nothing that has threads or locks is used on the other side of a fork; it is made
//! anew.

use std::sync::{
    Once, OnceLock,
    atomic::{AtomicPtr, AtomicU64, Ordering},
};

/// How many forks lie between this process and the one that loaded the module.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Begins to notice forks.
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    WATCHED.call_once(|| {
        // SAFETY: the handler changes one atomic number, and the module is never unmapped (see build.rs).
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// A value that is made in each process when it is first asked for.
pub(crate) struct PerProcess<T>(AtomicPtr<Made<T>>);

struct Made<T> {
    generation: u64,
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value of this process. That of the parent is left alone, locks, memory and all.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        let generation = GENERATION.load(Ordering::Relaxed);
        loop {
            let made = self.0.load(Ordering::Acquire);
            // SAFETY: it is null, or was made below and is not freed before `self` is.
            match unsafe { made.as_ref() } {
                Some(here) if here.generation == generation => return here.value.get_or_init(make),
                _ => {
                    let new = Box::into_raw(Box::new(Made { generation, value: OnceLock::new() }));
                    let placed = self.0.compare_exchange(made, new, Ordering::AcqRel, Ordering::Acquire);
                    if placed.is_err() {
                        // SAFETY: nobody else has seen it.
                        drop(unsafe { Box::from_raw(new) });
                    }
                }
            }
        }
    }

    /// Takes the value away, if this process has one.
    ///
    /// # Safety
    /// Nobody uses what [`get`](Self::get) has lent, now or later.
    pub(crate) unsafe fn clear(&self) -> Option<T> {
        let made = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: it is null, or a box made in `get` that nobody else has any more.
        let here = unsafe { made.as_ref() }
            .is_some_and(|made| made.generation == GENERATION.load(Ordering::Relaxed));
        // SAFETY: as above. A parent's is never freed: to free is to use.
        here.then(|| unsafe { Box::from_raw(made) }).and_then(|made| made.value.into_inner())
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        // SAFETY: whoever drops it lends nothing any more.
        drop(unsafe { self.clear() });
    }
}

/// Runs what needs more stack than an ASYNC job has (32 KiB) on a thread of its own, and waits for it.
pub(crate) fn on_own_stack<T: Send>(what: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().name("quadrille-start".into()).spawn_scoped(scope, what);
        spawned.map_or_else(|error| Err(Box::new(error) as Box<_>), std::thread::ScopedJoinHandle::join)
    })
}

/// Runs what needs more stack than an ASYNC job has: on the caller's, unless that is a job's. A server that chooses
/// certificates by name reads keys in the midst of a handshake.
pub(crate) fn with_enough_stack<T: Send>(what: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    if crate::wait::in_job() { on_own_stack(what) } else { Ok(what()) }
}

#[cfg(test)]
mod tests {
    use super::{GENERATION, PerProcess};
    use std::sync::atomic::Ordering;

    #[test]
    fn a_child_makes_its_own() {
        let value = PerProcess::new();
        assert_eq!(*value.get(|| 1), 1);
        assert_eq!(*value.get(|| 2), 1, "made once");
        GENERATION.fetch_add(1, Ordering::Relaxed);
        assert_eq!(*value.get(|| 3), 3, "as after a fork");
        // SAFETY: nothing of it is used.
        assert_eq!(unsafe { value.clear() }, Some(3));
        assert_eq!(*value.get(|| 4), 4);
    }
}
