//! What computes: SIMD lanes, a GPU, another machine, or plain BoringSSL.

use crate::{
    Key, KeyType, Operation, Overflow, Scalar, delivery::Delivery, error::OperationError, key::Material,
    rsa_padding, ticket::Ticket,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use zeroize::Zeroizing;

/// Computes private-key operations, several at once where it can.
pub trait Backend: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// How many operations of this type one pass computes for the price of one. Does not change.
    fn width(&self, key_type: KeyType) -> usize;

    /// From how many operations on a pass is cheaper than the scalar backend, which gets the smaller batches.
    /// Does not change; above [`width`](Self::width) it means never.
    fn crossover(&self, key_type: KeyType) -> usize {
        let _ = key_type;
        1
    }

    /// Computes ahead what depends on the key alone, to be kept in [`Key::prepared`]. It may be called several times
    /// for one key, or never.
    fn prepare(&self, key: &Key) {
        let _ = key;
    }

    /// Computes every job of the batch and finishes each as soon as its result is there. All are of one key type, each
    /// with its own key. They fill whole passes, or one pass in part. A job that is not finished, or whose result does
    /// not verify, is computed again by the scalar backend.
    fn compute(&self, batch: &mut [Job<'_>]);

    /// Whether results have already been checked against the public key. If not, the engine does it. Does not change.
    fn verifies(&self) -> bool;

    /// Who computes what is too much for this backend. Asked once, when the engine starts.
    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        None
    }
}

impl Backend for Box<dyn Backend> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn width(&self, key_type: KeyType) -> usize {
        (**self).width(key_type)
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        (**self).crossover(key_type)
    }

    fn prepare(&self, key: &Key) {
        (**self).prepare(key);
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        (**self).compute(batch);
    }

    fn verifies(&self) -> bool {
        (**self).verifies()
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        (**self).overflow()
    }
}

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

/// How operations of one key type are batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// How many one pass of the backend computes for the price of one; at least 1.
    pub width: usize,
    /// Fewer are computed by the scalar backend; at most `width`, or `usize::MAX` if the backend never pays.
    pub crossover: usize,
}

impl Batching {
    /// One operation after the other.
    const NEVER: Self = Self { width: 1, crossover: usize::MAX };

    fn new(width: usize, crossover: usize) -> Self {
        match crossover.max(1) {
            crossover if crossover <= width => Self { width, crossover },
            _ => Self::NEVER,
        }
    }
}

/// The backend that an engine was started with. What it says of itself is asked on submitters' threads, and a panic in
/// its answer is taken for a no: no compute thread is lost.
pub(crate) struct Installed {
    backend: Box<dyn Backend>,
    name: &'static str,
    verifies: bool,
    pub(crate) overflow: Option<Arc<dyn Overflow>>,
}

/// Who computes a batch.
pub(crate) struct Chosen<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) name: &'static str,
    pub(crate) verifies: bool,
}

impl Installed {
    pub(crate) fn new(backend: impl Backend) -> Self {
        let overflow = backend.overflow();
        Self { name: backend.name(), verifies: backend.verifies(), overflow, backend: Box::new(backend) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn batching(&self, key_type: KeyType) -> Batching {
        let ask = || Batching::new(self.backend.width(key_type), self.backend.crossover(key_type));
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Batching::NEVER)
    }

    pub(crate) fn prepare(&self, key: &Key) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.backend.prepare(key)));
    }

    pub(crate) fn choose(&self, scalar: bool) -> Chosen<'_> {
        if scalar {
            Chosen { backend: &Scalar, name: Scalar.name(), verifies: Scalar.verifies() }
        } else {
            Chosen { backend: &*self.backend, name: self.name, verifies: self.verifies }
        }
    }
}
