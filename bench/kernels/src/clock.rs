//! CPU time, and an estimate of core cycles.

use std::time::Duration;

/// One turn of a contender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Nanoseconds of one call.
    pub(crate) nanoseconds: f64,
    /// Core cycles of one call.
    pub(crate) cycles: f64,
}

/// Calls `run` repeatedly for at least `turn_ms` milliseconds.
pub(crate) fn sample(run: &mut dyn FnMut(), turn_ms: u64) -> Sample {
    let before = cycle_nanoseconds();
    let (start, mut calls) = (cpu_time(), 0u32);
    let elapsed = loop {
        run();
        calls += 1;
        let elapsed = cpu_time() - start;
        if elapsed >= Duration::from_millis(turn_ms) {
            break elapsed;
        }
    };
    let cycle = (before + cycle_nanoseconds()) / 2.0;
    let nanoseconds = elapsed.as_nanos() as f64 / f64::from(calls);
    Sample { nanoseconds, cycles: nanoseconds / cycle }
}

/// Returns this thread's CPU time so far. Time in which other programs had the core does not count.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable; Linux has had this clock for twenty years.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns nanoseconds per core cycle, from a chain of dependent multiplications, three cycles each on every x86-64
/// since 2010. The time stamp counter is not usable: its rate is fixed, the core's is not.
fn cycle_nanoseconds() -> f64 {
    const ROUNDS: u32 = 5_000;
    const CHAIN: u32 = 20;
    let mut x = 3u64;
    let start = cpu_time();
    for _ in 0..ROUNDS {
        // SAFETY: computes in one register and has no other effect.
        unsafe { std::arch::asm!(".rept 20", "imul {0}, {0}", ".endr", inout(reg) x) };
    }
    std::hint::black_box(x);
    (cpu_time() - start).as_nanos() as f64 / f64::from(3 * CHAIN * ROUNDS)
}

/// Returns the median of a list.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// Returns the quantile: the value that this fraction of a list does not exceed.
pub(crate) fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * part) as usize]
}
