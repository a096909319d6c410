//! State of each process. Servers read their keys and then fork: threads do not survive in the child, and a lock that
//! one of them held stays locked. So nothing that has threads or locks is used across a fork; it is created again.

use std::sync::{
    Once, OnceLock,
    atomic::{AtomicPtr, AtomicU64, Ordering},
};

/// Number of forks between this process and the one that loaded the module.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Starts counting forks.
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

/// A value that each process creates on first use.
pub(crate) struct PerProcess<T>(AtomicPtr<Made<T>>);

struct Made<T> {
    generation: u64,
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the value of this process. The parent's is left untouched, with its locks and memory.
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
                        // SAFETY: it has not been shared.
                        drop(unsafe { Box::from_raw(new) });
                    }
                }
            }
        }
    }

    /// Removes the value, if this process has one.
    ///
    /// # Safety
    /// References returned by [`get`](Self::get) are not used any more.
    pub(crate) unsafe fn clear(&self) -> Option<T> {
        let made = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: it is null, or a box made in `get` without other references.
        let here = unsafe { made.as_ref() }
            .is_some_and(|made| made.generation == GENERATION.load(Ordering::Relaxed));
        // SAFETY: as above. A parent's value is never freed: freeing would use it.
        here.then(|| unsafe { Box::from_raw(made) }).and_then(|made| made.value.into_inner())
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        // SAFETY: a value being dropped has no outstanding references.
        drop(unsafe { self.clear() });
    }
}

/// Runs a function that needs more stack than an ASYNC job has (32 KiB) on a separate thread, and waits for it.
pub(crate) fn on_own_stack<T: Send>(what: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new().name("quadrille-start".into()).spawn_scoped(scope, what);
        spawned.map_or_else(|error| Err(Box::new(error) as Box<_>), std::thread::ScopedJoinHandle::join)
    })
}

/// Runs a function that needs more stack than an ASYNC job has: on the caller's stack, unless that is a job's. A
/// server that selects certificates by name loads keys during a handshake.
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
        // SAFETY: it is not used any more.
        assert_eq!(unsafe { value.clear() }, Some(3));
        assert_eq!(*value.get(|| 4), 4);
    }
}
