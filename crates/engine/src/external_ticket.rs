//! Operations of external keys in progress: their results are verified, and handed to their completions.

use crate::{
    BatchReport, ExternalOperation, Operation, OperationError, Outcome, PublicKey, shared::Shared,
    ticket::Ticket, verify,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Ticket of an operation, as passed to the owner of its key.
pub(crate) struct ExternalTicket {
    ticket: Arc<Ticket>,
    shared: Arc<Shared>,
    backend: &'static str,
    began: OnceLock<Instant>,
    finished: AtomicBool,
}

impl ExternalTicket {
    pub(crate) fn new(ticket: &Arc<Ticket>, shared: &Arc<Shared>, backend: &'static str) -> Self {
        Self {
            ticket: Arc::clone(ticket),
            shared: Arc::clone(shared),
            backend,
            began: OnceLock::new(),
            finished: AtomicBool::new(false),
        }
    }

    /// Marks an operation that was not accepted, which is not reported to the observer.
    pub(crate) fn refuse(&self) {
        self.finished.store(true, Ordering::Release);
    }

    fn deliver(&self, result: Result<Zeroizing<Vec<u8>>, OperationError>) {
        let now = Instant::now();
        let began = self.began.get().copied().unwrap_or(now);
        let waited = began.saturating_duration_since(self.ticket.submitted);
        let computed = now.saturating_duration_since(began);
        let failed = usize::from(result.is_err());
        let outcome = result.map(|bytes| Outcome { bytes, waited, computed, batch: 1, cpu: Duration::ZERO });
        if let Some(waker) = self.ticket.finish(outcome) {
            // A waker is foreign code.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        let report = BatchReport {
            key_type: self.public().key_type(),
            backend: self.backend,
            operations: 1,
            waited,
            computed,
            cpu: Duration::ZERO,
            saved: Duration::ZERO,
            recomputed: 0,
            failed,
            in_place: false,
        };
        self.shared.tell(|observer| observer.batch(&report));
    }
}

impl ExternalOperation for ExternalTicket {
    fn operation(&self) -> &Operation {
        &self.ticket.operation
    }

    fn public(&self) -> &PublicKey {
        self.ticket.key.public()
    }

    fn begin(&self) -> bool {
        if self.is_over() {
            return false;
        }
        self.began.get().is_some() || {
            let wanted = self.ticket.begin();
            let _ = self.began.set(Instant::now());
            wanted
        }
    }

    fn is_over(&self) -> bool {
        self.finished.load(Ordering::Acquire) || self.ticket.is_over()
    }

    fn finish(&self, result: Result<Zeroizing<Vec<u8>>, OperationError>) -> bool {
        if self.is_over() {
            return true;
        }
        let claimed = result.is_ok();
        let confirmed = |bytes: &Zeroizing<Vec<u8>>| verify::holds(self.public(), self.operation(), bytes);
        let result =
            result.and_then(|bytes| confirmed(&bytes).then_some(bytes).ok_or(OperationError::Failed));
        let is_wrong = claimed && result.is_err();
        // Another thread may have finished it while the result was verified.
        if !self.finished.swap(true, Ordering::AcqRel) {
            self.deliver(result);
        }
        !is_wrong
    }
}

impl Drop for ExternalTicket {
    fn drop(&mut self) {
        self.finish(Err(OperationError::Failed));
    }
}
