//! Age of the view: the time since all watches were open.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Open and interrupted watches, by their paths. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches(Arc<Mutex<BTreeMap<String, Watch>>>);

#[derive(Debug)]
struct Watch {
    open: usize,
    /// Time at which the last one ended.
    ended: Instant,
}

/// An open watch; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenWatch {
    watches: Watches,
    path: String,
}

impl Watches {
    /// Adds a watch that was opened.
    pub(crate) fn open(&self, path: String, now: Instant) -> OpenWatch {
        self.lock().entry(path.clone()).or_insert(Watch { open: 0, ended: now }).open += 1;
        OpenWatch { watches: self.clone(), path }
    }

    fn close(&self, path: &str, now: Instant) {
        if let Some(watch) = self.lock().get_mut(path) {
            watch.open = watch.open.saturating_sub(1);
            watch.ended = now;
        }
    }

    /// Returns the time for which the watch that was interrupted first has been so; zero if all are open.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        let watches = self.lock();
        let interrupted = watches.values().filter(|watch| watch.open == 0);
        interrupted.map(|watch| now.saturating_duration_since(watch.ended)).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.watches.close(&self.path, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_that_of_the_longest_interruption() {
        let watches = Watches::default();
        let begin = Instant::now();
        let services = watches.open("services".to_owned(), begin);
        let secrets = watches.open("secrets".to_owned(), begin);
        assert_eq!(watches.age(begin + Duration::from_secs(60)), Duration::ZERO);
        drop(secrets);
        let at = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(watches.age(at(10)) >= Duration::from_secs(10));
        drop(services);
        let again = watches.open("secrets".to_owned(), Instant::now());
        assert!(watches.age(at(5)) >= Duration::from_secs(5));
        let _services = watches.open("services".to_owned(), Instant::now());
        assert_eq!(watches.age(at(5)), Duration::ZERO);
        drop(again);
    }
}
