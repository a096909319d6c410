//! The way back: a result is checked, recomputed where it fails, and handed to whoever waits.

use crate::{OperationError, Outcome, scalar, ticket::Ticket, verify};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};
use zeroize::Zeroizing;

/// What happened to one batch; lives on the compute thread's stack while the backend works.
pub(crate) struct Delivery {
    offered: usize,
    backend_verifies: bool,
    pub(crate) began: Instant,
    pub(crate) recomputed: Cell<usize>,
    pub(crate) failed: Cell<usize>,
}

type Result = std::result::Result<Zeroizing<Vec<u8>>, OperationError>;

impl Delivery {
    pub(crate) fn new(offered: usize, backend_verifies: bool) -> Self {
        let (recomputed, failed) = (Cell::new(0), Cell::new(0));
        Self { offered, backend_verifies, began: Instant::now(), recomputed, failed }
    }

    pub(crate) fn deliver(&self, ticket: &Ticket, result: Result) {
        let result = self.checked(ticket, result);
        if result.is_err() {
            self.failed.set(self.failed.get() + 1);
        }
        let outcome = result.map(|bytes| Outcome {
            bytes,
            waited: self.began.saturating_duration_since(ticket.submitted),
            computed: self.began.elapsed(),
            batch: self.offered,
        });
        if let Some(waker) = ticket.finish(outcome) {
            // A waker is foreign code: its panic must not reach the batch's other jobs.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
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
