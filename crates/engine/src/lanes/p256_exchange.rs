//! ECDH on P-256 in lanes.

use super::Lanes;
use crate::{P256, P256SecretOperation};
use quadrille_kernels::{P256_BYTES, P256_POINT_BYTES, P256Agreement};

impl P256 for Lanes {
    fn name(&self) -> &'static str {
        self.lanes.name()
    }

    fn width(&self) -> usize {
        self.lanes.p256_width()
    }

    fn crossover(&self) -> usize {
        self.crossovers.p256_exchange
    }

    fn secrets(&self, operations: &mut [P256SecretOperation<'_>]) {
        let (mut batch, mut complete) =
            (Vec::with_capacity(operations.len()), Vec::with_capacity(operations.len()));
        for P256SecretOperation { private, peer, secret, complete: done } in operations {
            batch.push(P256Agreement::new(private, peer, secret));
            complete.push(done);
        }
        self.lanes.agree_p256(&mut batch);
        for (operation, complete) in batch.iter().zip(complete) {
            *complete = operation.is_computed();
        }
    }

    fn public_keys(&self, private: &[[u8; P256_BYTES]], public: &mut [[u8; P256_POINT_BYTES]]) {
        self.lanes.p256_public_keys(private, public);
    }
}
