//! Public interface of the engine.

use crate::{
    Backend, BatchReport, Batching, Completion, Depth, ExternalKey, Key, KeyType, Observer, Operation,
    OperationError, Overflow, Priority, Scalar, Settings,
    compute::Threads,
    external_ticket::ExternalTicket,
    installed::Installed,
    scalar,
    shared::Shared,
    signing_turn,
    ticket::{Outcome, Ticket},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Takes operations from all threads and computes them in batches. Clones share one engine; when the last is dropped,
/// queued operations are still computed, and then its threads end.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    _threads: Arc<Threads>,
}

impl Engine {
    /// Starts the compute threads.
    pub fn start(
        settings: Settings,
        backend: impl Backend,
        observer: impl Observer,
    ) -> std::io::Result<Self> {
        let backend = Installed::new(backend);
        let shared = Shared::new(settings, backend, Box::new(observer));
        let shared = Arc::new(shared);
        let threads = Threads::start(&shared, settings.threads)?;
        Ok(Self { shared, _threads: Arc::new(threads) })
    }

    /// Precomputes the backend's values for a key before its first operation, to avoid that delay in a handshake.
    pub fn prepare(&self, key: &Key) {
        self.shared.backend.prepare(key);
    }

    /// Submits an operation and wakes a compute thread for it. Errors as for [`enqueue`](Self::enqueue).
    pub fn submit(&self, key: &Key, operation: Operation) -> Result<Completion, OperationError> {
        operation.check(key.public())?;
        if let Some(private) = key.as_external() {
            return self.submit_external(&**private, key, operation);
        }
        if is_cheap(key.key_type()) {
            return Ok(self.compute_in_place(key, &operation));
        }
        let completion = self.queue(key, operation, Priority::Normal)?;
        self.flush();
        Ok(completion)
    }

    /// Submits an operation without waking a compute thread. Call [`flush`](Self::flush) at the end of the event
    /// loop's turn: all operations of one turn then form one batch and cost one wake-up.
    ///
    /// An operation that costs less than its hand-over is computed on the caller's thread: immediately, or at the end
    /// of the turn if there is a [`BatchFlusher`](crate::BatchFlusher) and the previous turns brought several.
    ///
    /// # Errors
    /// [`WrongKeyType`](OperationError::WrongKeyType) and [`InvalidInput`](OperationError::InvalidInput) if the
    /// operation does not fit the key, [`QueueFull`](OperationError::QueueFull) if too many operations wait, and
    /// [`Failed`](OperationError::Failed) if an external key is not available.
    pub fn enqueue(&self, key: &Key, operation: Operation) -> Result<Completion, OperationError> {
        self.enqueue_with(Priority::Normal, key, operation)
    }

    /// Like [`enqueue`](Self::enqueue), with a priority that applies if the operation is queued.
    pub fn enqueue_with(
        &self,
        priority: Priority,
        key: &Key,
        operation: Operation,
    ) -> Result<Completion, OperationError> {
        operation.check(key.public())?;
        if let Some(private) = key.as_external() {
            return self.submit_external(&**private, key, operation);
        }
        if is_cheap(key.key_type()) {
            return Ok(match signing_turn::defer(&self.shared, key, operation) {
                Ok(ticket) => Completion::deferred(ticket, Arc::clone(&self.shared)),
                Err(operation) => self.compute_in_place(key, &operation),
            });
        }
        self.queue(key, operation, priority)
    }

    /// Returns whether operations of this type wait for a compute thread, unless the key is external. Others are computed
    /// on the caller's thread.
    pub fn queues(&self, key_type: KeyType) -> bool {
        !is_cheap(key_type)
    }

    /// Wakes a compute thread if operations wait and a thread is free.
    pub fn flush(&self) {
        self.shared.flush();
    }

    /// Depths of the queues.
    pub fn depths(&self) -> Vec<Depth> {
        self.shared.state().queues.depths()
    }

    /// Name of the backend.
    pub fn backend(&self) -> &'static str {
        self.shared.backend.name()
    }

    /// Overflow for load that exceeds the backend, if there is one.
    pub fn overflow(&self) -> Option<&dyn Overflow> {
        self.shared.backend.overflow.as_deref()
    }

    /// Batching parameters of this key type, including types that have not been used yet.
    pub fn batching(&self, key_type: KeyType) -> Batching {
        self.shared.backend.batching(key_type)
    }

    /// Key types of which the backend computes several at once, with their batching parameters.
    pub fn batched(&self) -> Vec<(KeyType, Batching)> {
        let batching = KeyType::COMMON.map(|key_type| (key_type, self.batching(key_type)));
        batching.into_iter().filter(|(_, batching)| batching.width > 1).collect()
    }

    /// Batching parameters of X25519 in key exchange.
    pub fn x25519_batching(&self) -> Batching {
        let lanes = self.shared.backend.x25519();
        lanes.map_or(Batching::NEVER, crate::X25519::batching)
    }

    /// Batching parameters of P-256 in key exchange.
    pub fn p256_batching(&self) -> Batching {
        let lanes = self.shared.backend.p256();
        lanes.map_or(Batching::NEVER, crate::P256::batching)
    }

    /// Batching parameters of ML-KEM-768 in key exchange.
    pub fn ml_kem_batching(&self) -> Batching {
        let lanes = self.shared.backend.ml_kem();
        lanes.map_or(Batching::NEVER, crate::MlKem768::batching)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn queue(
        &self,
        key: &Key,
        operation: Operation,
        priority: Priority,
    ) -> Result<Completion, OperationError> {
        let ticket = self.shared.push(key, operation, priority)?;
        Ok(Completion::pending(ticket, Arc::clone(&self.shared)))
    }

    /// Passes the operation to the owner of the key.
    fn submit_external(
        &self,
        private: &dyn ExternalKey,
        key: &Key,
        operation: Operation,
    ) -> Result<Completion, OperationError> {
        let key_type = key.key_type();
        let ticket = Arc::new(Ticket::new(key.clone(), operation, Instant::now(), Priority::Normal));
        let passed = Arc::new(ExternalTicket::new(&ticket, &self.shared, private.backend()));
        match private.submit(passed.clone()) {
            Ok(()) => Ok(Completion::external(ticket, Arc::clone(&self.shared))),
            Err(error) => {
                passed.refuse();
                if error == OperationError::QueueFull {
                    self.shared.tell(|observer| observer.shed(key_type));
                }
                Err(error)
            }
        }
    }

    fn compute_in_place(&self, key: &Key, operation: &Operation) -> Completion {
        let began = Instant::now();
        let result = scalar::compute(key, operation);
        let computed = began.elapsed();
        let report = BatchReport {
            key_type: key.key_type(),
            backend: Scalar.name(),
            operations: 1,
            waited: Duration::ZERO,
            computed,
            cpu: computed,
            saved: Duration::ZERO,
            recomputed: 0,
            failed: usize::from(result.is_err()),
            in_place: true,
        };
        self.shared.tell(|observer| observer.batch(&report));
        let (waited, cpu) = (Duration::ZERO, Duration::ZERO);
        Completion::in_place(result.map(|bytes| Outcome { bytes, waited, computed, batch: 1, cpu }))
    }
}

/// Returns whether the hand-over is too expensive: it costs a quarter of these operations, and one percent of all
/// others. See docs/decisions/cheap-operations-in-place.md.
fn is_cheap(key_type: KeyType) -> bool {
    matches!(key_type, KeyType::EcdsaP256 | KeyType::Ed25519)
}
