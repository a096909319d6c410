//! X25519 in lanes.

use super::Lanes;
use crate::{SecretOperation, X25519};
use quadrille_kernels::Agreement;

impl X25519 for Lanes {
    fn name(&self) -> &'static str {
        self.lanes.name()
    }

    fn width(&self) -> usize {
        self.lanes.x25519_width()
    }

    fn crossover(&self) -> usize {
        self.crossovers.x25519
    }

    fn secrets(&self, operations: &mut [SecretOperation<'_>]) {
        let operations = operations.iter_mut();
        let mut batch: Vec<Agreement<'_>> =
            operations.map(|one| Agreement::new(one.private, one.peer, one.secret)).collect();
        self.lanes.agree(&mut batch);
    }

    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 32]]) {
        self.lanes.x25519_public_keys(private, public);
    }
}
