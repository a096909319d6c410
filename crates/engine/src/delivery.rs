//! The way back: a result is checked, recomputed where it fails, and handed to whoever waits.

use crate::{OperationError, Outcome, scalar, ticket::Ticket, verify};
use std::{cell::Cell, time::Instant};

/// What happened to one batch; lives on the compute thread's stack while the backend works.
pub(crate) struct Delivery {
    pub(crate) backend_verifies: bool,
    pub(crate) offered: usize,
    pub(crate) began: Instant,
    pub(crate) recomputed: Cell<usize>,
    pub(crate) failed: Cell<usize>,
}

impl Delivery {
    pub(crate) fn deliver(&self, ticket: &Ticket, result: Result<Vec<u8>, OperationError>) {
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
            waker.wake();
        }
    }

    fn checked(
        &self,
        ticket: &Ticket,
        result: Result<Vec<u8>, OperationError>,
    ) -> Result<Vec<u8>, OperationError> {
        match result {
            Ok(bytes) if self.backend_verifies || verify::holds(&ticket.key, &ticket.operation, &bytes) => {
                Ok(bytes)
            }
            Err(error @ (OperationError::InvalidInput | OperationError::WrongKeyType)) => Err(error),
            _ => {
                self.recomputed.set(self.recomputed.get() + 1);
                scalar::compute(&ticket.key, &ticket.operation)
            }
        }
    }
}
