//! What computes: SIMD lanes, a GPU, another machine, or plain BoringSSL.

use crate::{Key, KeyType, Operation, delivery::Delivery, error::OperationError, ticket::Ticket};

/// Computes private-key operations, several at once where it can.
pub trait Backend: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// How many operations of this type one pass computes for the price of one.
    fn width(&self, key_type: KeyType) -> usize;

    /// Computes every job of the batch and finishes each as soon as its result is there. All are of one key type,
    /// each with its own key; there may be fewer than `width` or more. A job that is not finished, or whose
    /// result does not verify, is computed again by the scalar backend.
    fn compute(&self, batch: &mut [Job<'_>]);

    /// Whether results have already been checked against the public key. If not, the engine does it.
    fn verifies(&self) -> bool;
}

/// One operation of a batch.
pub struct Job<'a> {
    ticket: &'a Ticket,
    delivery: &'a Delivery,
    finished: bool,
}

impl<'a> Job<'a> {
    pub(crate) fn new(ticket: &'a Ticket, delivery: &'a Delivery) -> Self {
        Self { ticket, delivery, finished: false }
    }

    /// With which key.
    pub fn key(&self) -> &'a Key {
        &self.ticket.key
    }

    /// What to do.
    pub fn operation(&self) -> &'a Operation {
        &self.ticket.operation
    }

    /// Sets the result, a signature in its TLS form or the raw RSA result, and wakes whoever waits for it.
    pub fn finish(&mut self, result: Result<Vec<u8>, OperationError>) {
        if !self.finished {
            self.finished = true;
            self.delivery.deliver(self.ticket, result);
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }
}
