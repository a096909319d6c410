//! Pinning of threads to a core.

use anyhow::{Result, ensure};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};

/// Pins the calling thread, and threads that it starts later, to `core`.
pub fn pin_to(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    let pinned = sched_setaffinity(Pid::from_raw(0), &cores);
    ensure!(pinned.is_ok(), "this machine has no core {core}: the comparison needs two");
    Ok(())
}
