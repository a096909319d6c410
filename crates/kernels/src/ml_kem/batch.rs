//! Batches, for any implementation of the lanes.

use super::kernels::Kernels;
use super::vector::LANES;
use super::workspace::Workspace;
use super::{Encapsulation, Outcome};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Kernels, and the idle memory of earlier batches.
pub(crate) struct Pool<K: Kernels> {
    kernels: K,
    idle: Mutex<Vec<Box<Workspace<K::Vector>>>>,
}

impl<K: Kernels> Pool<K> {
    pub(crate) fn new(kernels: K) -> Self {
        Self { kernels, idle: Mutex::default() }
    }

    /// Computes every encapsulation of the batch, eight at a time, and a last one alone.
    pub(crate) fn encapsulate(&self, batch: &mut [Encapsulation<'_>]) {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut workspace = taken.unwrap_or_else(Workspace::new);
        for batch in batch.chunks_mut(LANES) {
            match batch {
                [lone] => self.lone(lone, &mut workspace),
                batch => self.pass(batch, &mut workspace),
            }
        }
        idle().push(workspace);
    }

    fn lone(&self, op: &mut Encapsulation<'_>, workspace: &mut Workspace<K::Vector>) {
        workspace.lone.message = *op.randomness;
        self.kernels.encapsulate_lone(op.key, workspace);
        op.outcome = if workspace.valid[0] { Outcome::Computed } else { Outcome::InvalidKey };
        if workspace.valid[0] {
            *op.ciphertext = workspace.ciphertexts[0];
            *op.secret = workspace.lone.message;
        }
        self.kernels.wipe_lone(&mut workspace.lone);
    }

    fn pass(&self, batch: &mut [Encapsulation<'_>], workspace: &mut Workspace<K::Vector>) {
        let mut keys = [batch[0].key; LANES];
        for ((op, key), message) in batch.iter().zip(&mut keys).zip(&mut workspace.secrets.messages) {
            (*key, *message) = (op.key, *op.randomness);
        }
        self.kernels.encapsulate(&keys[..batch.len()], workspace);
        for (lane, op) in batch.iter_mut().enumerate() {
            op.outcome = if workspace.valid[lane] { Outcome::Computed } else { Outcome::InvalidKey };
            if workspace.valid[lane] {
                *op.ciphertext = workspace.ciphertexts[lane];
                *op.secret = workspace.secrets.messages[lane];
            }
        }
        self.kernels.wipe(&mut workspace.secrets);
    }
}

impl<K: Kernels> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
