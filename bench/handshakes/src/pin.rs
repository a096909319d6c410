//! Threads on one core.

use anyhow::{Result, ensure};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// Keeps the calling thread, and those that it starts from now on, on `core`.
pub fn pin_to(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    let pinned = sched_setaffinity(Pid::from_raw(0), &cores);
    ensure!(pinned.is_ok(), "this machine has no core {core}: the comparison needs two");
    Ok(())
}
