//! Scheduling priority of the threads that serve the well-behaved client.

use nix::libc::{SCHED_FIFO, SCHED_OTHER, sched_param, sched_setscheduler};

/// Gives this thread precedence over all threads of the ordinary scheduling class: the measured latency must not
/// include that of the misbehaving clients and of their part of the origin, which share its core. Without the
/// privilege it does.
pub(super) fn raise_priority() {
    set_policy(SCHED_FIFO, 1);
}

/// Returns this thread to the ordinary scheduling class.
pub(super) fn lower_priority() {
    set_policy(SCHED_OTHER, 0);
}

fn set_policy(policy: i32, priority: i32) {
    const THIS_THREAD: i32 = 0;
    let parameters = sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one `sched_param`, which `parameters` is.
    let _ = unsafe { sched_setscheduler(THIS_THREAD, policy, &raw const parameters) };
}
