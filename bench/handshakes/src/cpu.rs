//! CPU time of process trees, from the kernel's own accounting.

use std::{thread, time::Duration};

use anyhow::{Context, Result};
use nix::{time::clock_getcpuclockid, unistd::Pid};

use crate::process_tree::process_tree;

/// Interval and number of the checks by which [`CpuClock::settled`] detects that a server is idle.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOOKS: usize = 30;
/// A server that uses less CPU than this between two checks is idle.
const REST: Duration = Duration::from_micros(100);

/// The CPU clock of processes and their descendants: user and system time of every thread, living and ended.
///
/// Read from POSIX process clocks, which count in nanoseconds; `utime` and `stime` of `/proc/PID/stat` have a
/// resolution of 10 ms, and `/proc/PID/task/*/schedstat` omits threads that have ended.
#[derive(Debug)]
pub struct CpuClock {
    processes: Vec<Pid>,
}

impl CpuClock {
    /// Creates the clock of `roots` and of their current descendants.
    pub fn of_trees(roots: &[Pid]) -> Result<Self> {
        let mut processes = Vec::new();
        for root in roots {
            processes.extend(process_tree(*root)?);
        }
        Ok(Self { processes })
    }

    /// Returns the CPU time used so far. Fails if one of the processes has ended: its time would be missing.
    pub fn read(&self) -> Result<Duration> {
        self.processes.iter().map(|pid| process_time(*pid)).sum()
    }

    /// Returns the CPU time used so far, once the server is idle: closing the last connections of a round belongs to
    /// that round. Waits at most 0.3 s, for a server that is never idle.
    pub fn settled(&self) -> Result<Duration> {
        let mut before = self.read()?;
        for _ in 0..LOOKS {
            thread::sleep(LOOK_AGAIN);
            let now = self.read()?;
            if now.saturating_sub(before) < REST {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }
}

fn process_time(pid: Pid) -> Result<Duration> {
    let clock = clock_getcpuclockid(pid).with_context(|| format!("process {pid} has ended"))?;
    let time = clock.now().with_context(|| format!("process {pid} has ended"))?;
    Ok(Duration::from(time))
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Instant};

    use super::*;

    #[test]
    fn work_done_shows_and_sleep_does_not() {
        let clock = CpuClock { processes: vec![Pid::this()] };
        let before = clock.read().unwrap();
        thread::sleep(Duration::from_millis(50));
        let slept = clock.read().unwrap();
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {}
        let worked = clock.read().unwrap();
        // Other tests share the process: only bounds that hold under load.
        assert!(worked - slept > Duration::from_millis(5), "{:?}", worked - slept);
        assert!(slept >= before);
    }

    #[test]
    fn a_child_that_ended_is_an_error_and_not_a_zero() {
        let mut child = Command::new("true").spawn().unwrap();
        let clock = CpuClock { processes: vec![Pid::from_raw(child.id().cast_signed())] };
        child.wait().unwrap();
        assert!(clock.read().is_err());
    }
}
