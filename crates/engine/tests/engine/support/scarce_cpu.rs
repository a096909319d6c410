//! CPU that is scarce: a backend that needs much of it, and threads that keep all CPUs busy.

use quadrille_engine::{Backend, Job, KeyType, Overflow, Scalar};
use quadrille_handshake_timing::thread_time;
use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Scalar backend that needs more CPU time.
pub(crate) struct Costly {
    /// CPU time of an operation.
    pub(crate) each: Duration,
    pub(crate) overflow: Option<Arc<dyn Overflow>>,
}

impl Backend for Costly {
    fn name(&self) -> &'static str {
        "costly"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        let end = thread_time() + self.each * u32::try_from(batch.len()).unwrap();
        while thread_time() < end {
            std::hint::spin_loop();
        }
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        self.overflow.clone()
    }
}

/// Keeps all CPUs busy until it is dropped.
pub(crate) struct BusyCpus {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCpus {
    pub(crate) fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let spin = |stop: Arc<AtomicBool>| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let start = |_| {
            std::thread::spawn({
                let stop = Arc::clone(&stop);
                move || spin(stop)
            })
        };
        let threads = (0..cpus).map(start).collect();
        Self { stop, threads }
    }
}

impl Drop for BusyCpus {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}
