//! Scheduling priority of the threads that serve the well-behaved client: the measured latency must not include that of
//! the misbehaving clients, which share their core. Without the privilege it does.

use nix::libc::{PRIO_PROCESS, SCHED_FIFO, sched_param, sched_setscheduler, setpriority};

const THIS_THREAD: u32 = 0;

/// Gives this thread precedence over all threads of the ordinary scheduling class. It must need little CPU time: the
/// kernel stops this class for some 50 ms when it has used 95 % of a second.
pub(super) fn raise_priority() {
    let parameters = sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one `sched_param`, which `parameters` is.
    let _ = unsafe { sched_setscheduler(THIS_THREAD as i32, SCHED_FIFO, &raw const parameters) };
}

/// Gives this thread nearly all CPU time that it needs, however much that is.
pub(super) fn prefer() {
    const MOST_PREFERRED: i32 = -20;
    // SAFETY: the call has no pointers.
    let _ = unsafe { setpriority(PRIO_PROCESS, THIS_THREAD, MOST_PREFERRED) };
}
