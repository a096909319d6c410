//! One operation, as a backend sees it.

use crate::{
    Key, Operation, delivery::Delivery, error::OperationError, key::Material, rsa_padding, ticket::Ticket,
};
use zeroize::Zeroizing;

/// One operation of a batch. The engine has checked that its key can do it.
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

    /// The input of the raw RSA private operation that this job comes down to, big-endian and as long as the modulus:
    /// the ciphertext, or the padded digest. The raw result is what [`finish`](Self::finish) wants. Ask once: PSS takes
    /// a new salt each time.
    ///
    /// # Errors
    /// [`WrongKeyType`](OperationError::WrongKeyType) if the key is not an RSA key.
    pub fn rsa_input(&self) -> Result<Zeroizing<Vec<u8>>, OperationError> {
        match self.key().material() {
            Material::Rsa(rsa) => rsa_padding::encode(rsa, self.operation()),
            _ => Err(OperationError::WrongKeyType),
        }
    }

    /// Sets the result, a signature in its TLS form or the raw RSA result, and wakes whoever waits for it. An error
    /// leaves the job to the scalar backend. Only the first call counts.
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
