//! Delivery of results: checks each one, recomputes those that fail, and hands them to their completions.

use crate::{OperationError, Outcome, scalar, ticket::Ticket, verify};
use quadrille_handshake_timing::thread_time;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// State of one batch; lives on the compute thread's stack while the backend works.
pub(crate) struct Delivery {
    offered: usize,
    /// Number of operations that one pass computes.
    width: usize,
    delivered: Cell<usize>,
    backend_verifies: bool,
    pub(crate) began: Instant,
    /// Start on the compute thread's CPU clock. Reading the clock is a system call.
    began_cpu: Duration,
    /// CPU time when the first result of the last pass was delivered.
    passed: Cell<Duration>,
    pub(crate) recomputed: Cell<usize>,
    pub(crate) failed: Cell<usize>,
}

type Result = std::result::Result<Zeroizing<Vec<u8>>, OperationError>;

impl Delivery {
    pub(crate) fn new(offered: usize, width: usize, backend_verifies: bool) -> Self {
        Self {
            offered,
            width: width.max(1),
            delivered: Cell::new(0),
            backend_verifies,
            began: Instant::now(),
            began_cpu: thread_time(),
            passed: Cell::new(Duration::ZERO),
            recomputed: Cell::new(0),
            failed: Cell::new(0),
        }
    }

    /// CPU time of the batch, after the delivery of its last result.
    pub(crate) fn cpu(&self) -> Duration {
        if self.offered == 1 { self.passed.get() } else { self.elapsed_cpu() }
    }

    fn elapsed_cpu(&self) -> Duration {
        thread_time().saturating_sub(self.began_cpu)
    }

    pub(crate) fn deliver(&self, ticket: &Ticket, result: Result) {
        let result = self.checked(ticket, result);
        if result.is_err() {
            self.failed.set(self.failed.get() + 1);
        }
        let cpu = self.share_of_cpu();
        let outcome = result.map(|bytes| Outcome {
            bytes,
            waited: self.began.saturating_duration_since(ticket.submitted),
            computed: self.began.elapsed(),
            batch: self.offered,
            cpu,
        });
        if let Some(waker) = ticket.finish(outcome) {
            // A waker is foreign code: its panic must not reach the batch's other jobs.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// Returns one operation's share of the cost of the passes so far. Results are delivered pass by pass, so each
    /// operation gets the same share, and a pass is not charged to those before it.
    fn share_of_cpu(&self) -> Duration {
        let delivered = self.delivered.get() + 1;
        self.delivered.set(delivered);
        let computed = delivered.next_multiple_of(self.width).min(self.offered.max(delivered));
        if (delivered - 1).is_multiple_of(self.width) {
            self.passed.set(self.elapsed_cpu());
        }
        self.passed.get() / u32::try_from(computed).unwrap_or(u32::MAX)
    }

    fn checked(&self, ticket: &Ticket, result: Result) -> Result {
        match result {
            Ok(bytes)
                if self.backend_verifies || verify::holds(ticket.key.public(), &ticket.operation, &bytes) =>
            {
                Ok(bytes)
            }
            _ => {
                self.recomputed.set(self.recomputed.get() + 1);
                scalar::compute(&ticket.key, &ticket.operation)
            }
        }
    }
}
