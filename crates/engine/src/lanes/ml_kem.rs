//! ML-KEM-768 in lanes.

use super::Lanes;
use crate::{EncapsulateOperation, MlKem768};
use boring::rand::rand_bytes;
use quadrille_kernels::{Encapsulation, Outcome};
use zeroize::Zeroizing;

impl MlKem768 for Lanes {
    fn name(&self) -> &'static str {
        self.lanes.name()
    }

    fn width(&self) -> usize {
        self.lanes.ml_kem_width()
    }

    fn crossover(&self) -> usize {
        self.crossovers.ml_kem
    }

    /// Completes no operation if there are no random numbers.
    fn encapsulate(&self, operations: &mut [EncapsulateOperation<'_>]) {
        let mut randomness = Zeroizing::new(vec![[0; 32]; operations.len()]);
        if rand_bytes(randomness.as_flattened_mut()).is_err() {
            return;
        }
        let (mut batch, mut complete) =
            (Vec::with_capacity(operations.len()), Vec::with_capacity(operations.len()));
        for (operation, randomness) in operations.iter_mut().zip(&*randomness) {
            let EncapsulateOperation { key, ciphertext, secret, complete: done } = operation;
            batch.push(Encapsulation::new(key, randomness, ciphertext, secret));
            complete.push(done);
        }
        self.lanes.encapsulate(&mut batch);
        for (operation, complete) in batch.iter().zip(complete) {
            *complete = operation.outcome() == Outcome::Computed;
        }
    }
}
