//! Scheduling priority of the threads that serve the well-behaved client.

use nix::libc::{SCHED_FIFO, sched_param, sched_setscheduler};

/// Gives this thread precedence over all threads of the ordinary scheduling class: the measured latency must not
/// include that of the misbehaving clients and of their part of the origin, which share its core. Without the
/// privilege it does. It must need little CPU time: the kernel stops the class for some 50 ms when it has used 95 % of a
/// second.
pub(super) fn raise_priority() {
    const THIS_THREAD: i32 = 0;
    let parameters = sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one `sched_param`, which `parameters` is.
    let _ = unsafe { sched_setscheduler(THIS_THREAD, SCHED_FIFO, &raw const parameters) };
}
