//! ML-KEM-768 on the chosen tier.

use crate::lanes::Lanes;
use crate::ml_kem::Encapsulation;

impl Lanes {
    /// How many of [`encapsulate`](Self::encapsulate)'s operations are computed at once; 1 if there are no lanes. Fewer
    /// take less time, though not by as much.
    pub fn ml_kem_width(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.ml_kem().is_some() {
            return crate::ml_kem::LANES;
        }
        1
    }

    /// Encapsulates for each client of the batch, in time that depends on public keys and on how many they are alone.
    /// An invalid key is marked, and does no harm to its neighbours. On tiers without lanes nothing is computed.
    pub fn encapsulate(&self, batch: &mut [Encapsulation<'_>]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(pool) = self.ml_kem() {
            pool.encapsulate(batch);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = batch;
    }
}
