//! Conditions that tests wait for.

use super::PATIENCE;
use std::{fs, thread, time::Duration, time::Instant};

/// Waits until `done` is true; `what` describes the failure.
#[track_caller]
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until `threads` compute threads of this process sleep, and none runs: they are idle.
#[track_caller]
pub(crate) fn until_asleep(threads: usize) {
    // Checks twice in a row: a single check may see a thread that waits for a lock.
    let mut looks = 0;
    eventually("the compute threads do not sleep", || {
        let states = states();
        let asleep = states.len() >= threads && states.iter().all(|state| *state == 'S');
        looks = if asleep { looks + 1 } else { 0 };
        looks >= 3
    });
}

/// Returns the states of compute threads, as proc_pid_stat(5) describes them.
fn states() -> Vec<char> {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads").flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let state = |stat: String| {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        rest.trim_start().chars().next().filter(|_| name.starts_with("compute-"))
    };
    stats.filter_map(state).collect()
}
