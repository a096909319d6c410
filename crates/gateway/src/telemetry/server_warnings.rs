//! Warnings about servers that fail: one line in ten seconds for each server and kind of failure, with a count.

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// Time for which further failures of the same kind are only counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Maximum number of servers and kinds that are known at once; further ones are logged in full.
const MOST: usize = 4096;

/// Warnings about the servers of one upstream.
#[derive(Debug, Default)]
pub(crate) struct ServerWarnings(Mutex<HashMap<Failure, Window>>);

/// A server, if one was selected, and the kind of its failure, which is the message.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Failure {
    server: Option<String>,
    kind: &'static str,
}

/// A period in which failures are counted.
#[derive(Debug)]
struct Window {
    end: Instant,
    /// Number of failures that were not logged.
    counted: u64,
}

/// Next step after a failure.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Log,
    /// Count it, and log the count at this time.
    CountUntil(Instant),
    Count,
}

impl ServerWarnings {
    /// Logs a failure, or counts it if the same one was logged shortly before. The count is logged when its period ends.
    pub(crate) fn warn(
        self: &Arc<Self>,
        upstream: &str,
        server: Option<&dyn Display>,
        error: &dyn Display,
        kind: &'static str,
    ) {
        let failure = Failure { server: server.map(ToString::to_string), kind };
        match self.step(&failure, Instant::now()) {
            Step::Log => tracing::warn!(upstream, server = failure.server, %error, "{kind}"),
            Step::Count => {}
            Step::CountUntil(end) => {
                let (warnings, upstream, error) = (Arc::clone(self), upstream.to_owned(), error.to_string());
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move {
                        tokio::time::sleep_until(end.into()).await;
                        let times = warnings.counted(&failure, Instant::now());
                        let Failure { server, kind } = failure;
                        tracing::warn!(upstream, server, last = error, times, "{kind}, repeatedly");
                    });
                }
            }
        }
    }

    fn step(&self, failure: &Failure, now: Instant) -> Step {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match windows.get_mut(failure) {
            Some(window) if now < window.end => {
                window.counted += 1;
                if window.counted == 1 { Step::CountUntil(window.end) } else { Step::Count }
            }
            _ => {
                if windows.len() >= MOST {
                    windows.retain(|_, window| now < window.end);
                }
                if windows.len() < MOST {
                    windows.insert(failure.clone(), Window { end: now + WINDOW, counted: 0 });
                }
                Step::Log
            }
        }
    }

    /// Returns the count of a period that has ended, and begins the next one.
    fn counted(&self, failure: &Failure, now: Instant) -> u64 {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.get_mut(failure).map(|window| {
            let counted = std::mem::take(&mut window.counted);
            window.end = now + WINDOW;
            counted
        });
        window.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_server_and_kind() {
        let (warnings, start) = (ServerWarnings::default(), Instant::now());
        let failure = |server: &str, kind| Failure { server: Some(server.to_owned()), kind };
        let at = |seconds| start + Duration::from_secs(seconds);
        let (a, b) = (failure("a", "x"), failure("b", "x"));
        assert_eq!(warnings.step(&a, at(0)), Step::Log);
        assert_eq!(warnings.step(&b, at(1)), Step::Log);
        assert_eq!(warnings.step(&failure("a", "y"), at(1)), Step::Log);
        assert_eq!(warnings.step(&a, at(2)), Step::CountUntil(at(10)));
        assert_eq!(warnings.step(&a, at(3)), Step::Count);
        assert_eq!(warnings.counted(&a, at(10)), 2);
        // A server that still fails has one line for each further period.
        assert_eq!(warnings.step(&a, at(11)), Step::CountUntil(at(20)));
        assert_eq!(warnings.counted(&a, at(20)), 1);
        assert_eq!(warnings.step(&a, at(31)), Step::Log);
    }

    #[test]
    fn the_number_of_servers_is_limited() {
        let (warnings, start) = (ServerWarnings::default(), Instant::now());
        let all = |now| {
            for number in 0..=MOST {
                let failure = Failure { server: Some(number.to_string()), kind: "x" };
                assert_eq!(warnings.step(&failure, now), Step::Log);
            }
        };
        all(start);
        assert_eq!(warnings.0.lock().expect("no panic").len(), MOST);
        all(start + WINDOW);
    }
}
