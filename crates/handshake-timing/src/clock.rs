//! CPU time of the calling thread, which excludes other threads, and of the process.

use std::time::Duration;

/// CPU time used by the calling thread. It takes a system call, some 0.2 us.
///
/// Uses libc: rustix finds the kernel's functions in memory by itself, which fails in programs under valgrind, where
/// the OpenSSL provider is tested.
pub fn thread_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time used by all threads of this process, which the kernel adds up thread by thread.
pub fn process_time() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. If the clock is missing it stays zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Cost of a [`thread_time`] call: the minimum of many calls.
pub fn reading_cost() -> Duration {
    let once = || {
        let began = thread_time();
        thread_time().saturating_sub(began)
    };
    (0..1000).map(|_| once()).min().unwrap_or_default()
}
