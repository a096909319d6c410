//! Throttle that limits a server to a fraction of its core's time, so that a slow client can keep it busy.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Result;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{pin::pin_to, process_tree::process_tree};

/// Length of a running and a stopped phase together.
const PERIOD: Duration = Duration::from_millis(20);

/// Fraction of its core's time that a server gets.
#[derive(Clone, Copy, Debug)]
pub struct Ration {
    /// The fraction, 0 to 1.
    pub share: f64,
    /// The server's core. The throttle runs there too, where it does not disturb the client.
    pub core: usize,
}

impl Ration {
    /// The whole core; its number does not matter.
    pub const WHOLE: Self = Self { share: 1.0, core: 0 };
}

/// Stops and continues a process tree periodically until it is dropped. Stopped processes use no CPU, so the kernel
/// accounts only for their running phases.
#[derive(Debug)]
pub struct Throttle(Option<(Sender<()>, JoinHandle<()>)>);

impl Throttle {
    /// Lets `root` and its descendants run for their share of the time; a share of 1 has no effect.
    pub fn start(root: Pid, Ration { share, core }: Ration) -> Result<Self> {
        if share >= 1.0 {
            return Ok(Self(None));
        }
        let processes = process_tree(root)?;
        let (end, ended) = mpsc::channel();
        let turn = PERIOD.mul_f64(share);
        let worker = thread::spawn(move || {
            // On another core it would be late at times: only the length of the phases depends on it.
            let _ = pin_to(core);
            let pause = |time| matches!(ended.recv_timeout(time), Err(RecvTimeoutError::Timeout));
            while pause(turn) {
                signal(&processes, Signal::SIGSTOP);
                let go_on = pause(PERIOD - turn);
                signal(&processes, Signal::SIGCONT);
                if !go_on {
                    break;
                }
            }
        });
        Ok(Self(Some((end, worker))))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        if let Some((end, worker)) = self.0.take() {
            drop(end);
            let _ = worker.join();
        }
    }
}

/// Signals the processes; an ended process is skipped.
fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        let _ = kill(*pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Instant};

    use super::*;
    use crate::cpu::CpuClock;

    #[test]
    fn a_throttled_process_gets_its_share_and_all_of_it_again() {
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = Pid::from_raw(busy.id().cast_signed());
        let clock = CpuClock::of_trees(&[pid]).unwrap();
        let used_in = |time| {
            let (before, start) = (clock.read().unwrap(), Instant::now());
            thread::sleep(time);
            (clock.read().unwrap() - before).as_secs_f64() / start.elapsed().as_secs_f64()
        };
        let throttle = Throttle::start(pid, Ration { share: 0.1, core: 0 }).unwrap();
        let throttled = used_in(Duration::from_millis(400));
        drop(throttle);
        let free = used_in(Duration::from_millis(200));
        busy.kill().unwrap();
        busy.wait().unwrap();
        // Other tests load the machine: only bounds that hold nevertheless.
        assert!(throttled < 0.5, "{throttled}");
        assert!(free > 0.0, "it was left stopped");
    }
}
