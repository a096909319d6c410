//! ML-KEM-768 on the chosen tier.

use crate::lanes::Lanes;
use crate::ml_kem::Encapsulation;

impl Lanes {
    /// Number of [`encapsulate`](Self::encapsulate)'s operations that are computed at once; 1 if there are no lanes.
    /// Fewer operations take less time, though not in proportion.
    pub fn ml_kem_width(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.ml_kem().is_some() {
            return crate::ml_kem::LANES;
        }
        1
    }

    /// Encapsulates for each client of the batch, in time that depends only on public keys and their number. An
    /// invalid key is marked, and does not affect others. On tiers without lanes nothing is computed.
    pub fn encapsulate(&self, batch: &mut [Encapsulation<'_>]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(pool) = self.ml_kem() {
            pool.encapsulate(batch);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = batch;
    }
}
