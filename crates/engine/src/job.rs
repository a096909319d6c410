//! One operation, as presented to a backend.

use crate::{
    Key, Operation, delivery::Delivery, error::OperationError, key::Material, rsa_padding, ticket::Ticket,
};
use zeroize::Zeroizing;

/// One operation of a batch. The engine has checked that its key supports it.
pub struct Job<'a> {
    ticket: &'a Ticket,
    delivery: &'a Delivery,
    finished: bool,
}

impl<'a> Job<'a> {
    pub(crate) fn new(ticket: &'a Ticket, delivery: &'a Delivery) -> Self {
        Self { ticket, delivery, finished: false }
    }

    /// Key of the operation.
    pub fn key(&self) -> &'a Key {
        &self.ticket.key
    }

    /// Operation to compute.
    pub fn operation(&self) -> &'a Operation {
        &self.ticket.operation
    }

    /// Input of the raw RSA private operation for this job, big-endian and as long as the modulus: the ciphertext, or
    /// the padded digest. [`finish`](Self::finish) expects the raw result. Call it once: PSS takes a new salt each
    /// time.
    ///
    /// # Errors
    /// [`WrongKeyType`](OperationError::WrongKeyType) if the key is not an RSA key.
    pub fn rsa_input(&self) -> Result<Zeroizing<Vec<u8>>, OperationError> {
        match self.key().material() {
            Material::Rsa(rsa) => rsa_padding::encode(rsa, self.operation()),
            _ => Err(OperationError::WrongKeyType),
        }
    }

    /// Sets the result, a signature in its TLS form or the raw RSA result, and wakes the waiting task. After an error
    /// the scalar backend computes the job. Only the first call counts.
    pub fn finish(&mut self, result: Result<Zeroizing<Vec<u8>>, OperationError>) {
        if !self.finished {
            self.finished = true;
            self.delivery.deliver(self.ticket, result);
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }
}
