//! Backend available on every machine: BoringSSL, one operation after the other.

use crate::{Backend, Job, KeyType, scalar};

/// BoringSSL, one operation after the other.
#[derive(Debug, Default)]
pub struct Scalar;

impl Backend for Scalar {
    fn name(&self) -> &'static str {
        "scalar"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for job in batch {
            job.finish(scalar::compute(job.key(), job.operation()));
        }
    }

    /// BoringSSL raises every RSA result to the public exponent before releasing it, and signatures of ML-DSA are
    /// verified.
    fn verifies(&self) -> bool {
        true
    }
}
