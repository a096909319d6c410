//! Background work that yields to the event loops.

use std::{io, thread};
use tokio::{runtime::Handle, sync::oneshot};

/// Scheduling weight of a background thread relative to an event loop: one to ten where both compete for a CPU. An
/// idle CPU is used fully.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Minimum time slice in nanoseconds. Kernels before 6.12 choose it themselves.
#[cfg(target_os = "linux")]
const SLICE: u64 = 100_000;

/// Runs `work` on a separate thread, in the context of the current runtime.
///
/// # Errors
/// Fails if the thread cannot be started, or panics.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let runtime = Handle::current();
    thread::Builder::new().name("apply".to_owned()).spawn(move || {
        lower_priority();
        let _entered = runtime.enter();
        let _ = done.send(work());
    })?;
    result.await.map_err(|_| io::Error::other("the thread panicked"))
}

/// Lowers the priority of the calling thread below that of the event loops, until it ends.
pub fn lower_priority() {
    // Other systems have no priorities of single threads.
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the struct consists of plain numbers, all of which may be zero; zero as policy is SCHED_OTHER.
        let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
        wanted.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
        wanted.sched_nice = NICE;
        wanted.sched_runtime = SLICE;
        // SAFETY: the attributes are valid for reads; 0 is the calling thread. Where the call is not permitted, all
        // threads keep the same priority.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    }
}
