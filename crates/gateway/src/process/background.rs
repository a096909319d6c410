//! Work beside the event loops that yields to them.

use std::{io, thread};
use tokio::{runtime::Handle, sync::oneshot};

/// How much smaller such work's claim to a CPU is than an event loop's: one to ten where both want the same CPU. One
/// that nobody else wants it has for itself.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Nanoseconds for which it keeps a CPU, at least, before it is taken away. Kernels before 6.12 choose that themselves.
#[cfg(target_os = "linux")]
const SLICE: u64 = 100_000;

/// Runs `work` on a thread of its own, from which tasks can be spawned as from here.
///
/// # Errors
/// There is no thread, or it panicked.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    let runtime = Handle::current();
    thread::Builder::new().name("apply".to_owned()).spawn(move || {
        lower_priority();
        let _entered = runtime.enter();
        let _ = done.send(work());
    })?;
    result.await.map_err(|_| io::Error::other("it panicked"))
}

/// Makes the calling thread yield to those that serve clients, until it ends.
pub fn lower_priority() {
    // Elsewhere threads have no priorities of their own.
    #[cfg(target_os = "linux")]
    {
        // SAFETY: plain numbers, all of which may be zero; the policy's is SCHED_OTHER.
        let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
        wanted.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
        wanted.sched_nice = NICE;
        wanted.sched_runtime = SLICE;
        // SAFETY: the attributes are there to be read; 0 is the calling thread. Where it is not allowed, all threads
        // stay equal.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    }
}
