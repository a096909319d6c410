//! Processing of one client share.

use super::exchange::Pending;
use crate::{
    EncapsulateOperation, ExchangeError, P256KeyPair, P256SecretOperation, SecretOperation, ServerShare,
    key_agreement::{Encapsulated, KeyPair},
};
use quadrille_kernels::P256_POINT_BYTES;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Share that is being processed.
pub(super) struct Job<'a> {
    pub(super) pending: &'a Pending,
    ml_kem: Option<Box<Encapsulated>>,
    pub(super) pair: Zeroizing<KeyPair>,
    /// Public key on P-256, which replaces that of the pair.
    p256: Option<[u8; P256_POINT_BYTES]>,
    pub(super) secret: Zeroizing<[u8; 32]>,
    pub(super) progress: Progress,
}

#[derive(Clone, Copy)]
pub(super) enum Progress {
    Open,
    Done,
    Failed(ExchangeError),
}

/// Cost of a batch.
pub(super) struct Took {
    pub(super) began: Instant,
    pub(super) computed: Duration,
    pub(super) batch: usize,
    pub(super) cpu: Duration,
}

impl<'a> Job<'a> {
    pub(super) fn new(pending: &'a Pending) -> Self {
        let (pair, secret) = Default::default();
        Self { pending, ml_kem: None, pair, p256: None, secret, progress: Progress::Open }
    }

    /// Returns whether X25519 is needed and the job has not failed.
    pub(super) fn asks_for_x25519(&self) -> bool {
        matches!(self.progress, Progress::Open) && self.pending.share.x25519().is_some()
    }

    pub(super) fn is_declined(&self) -> bool {
        matches!(self.progress, Progress::Failed(ExchangeError::Declined))
    }

    pub(super) fn secret_operation(&mut self) -> Option<SecretOperation<'_>> {
        let peer = self.pending.share.x25519()?;
        Some(SecretOperation { private: &self.pair.private, peer, secret: &mut self.secret })
    }

    /// Returns the operation for this key pair, and keeps its public key for the response.
    pub(super) fn p256_operation<'b>(&'b mut self, pair: &'b P256KeyPair) -> Option<P256SecretOperation<'b>> {
        let peer = self.pending.share.p256()?;
        self.p256 = Some(pair.public);
        Some(P256SecretOperation { private: &pair.private, peer, secret: &mut self.secret, complete: false })
    }

    pub(super) fn encapsulate_operation(&mut self) -> Option<EncapsulateOperation<'_>> {
        let key = self.pending.share.ml_kem()?;
        Some(self.ml_kem.get_or_insert_default().operation(key))
    }

    /// ML-KEM's part precedes X25519's, in the share and in the secret (draft-ietf-tls-ecdhe-mlkem, section 4).
    pub(super) fn answer(&self, took: &Took) -> Result<ServerShare, ExchangeError> {
        match self.progress {
            Progress::Done => {}
            Progress::Open => return Err(ExchangeError::Failed),
            Progress::Failed(error) => return Err(error),
        }
        let len = self.ml_kem.as_ref().map_or(0, |ml_kem| ml_kem.ciphertext.len());
        let key = self.p256.as_ref().map_or(&self.pair.public[..], |public| public);
        // Allocates the full size: a vector that grows would leave a copy of the secret behind.
        let mut public = Vec::with_capacity(len + key.len());
        let mut secret = Zeroizing::new(Vec::with_capacity(64));
        if let Some(ml_kem) = &self.ml_kem {
            public.extend_from_slice(&ml_kem.ciphertext);
            secret.extend_from_slice(&*ml_kem.secret);
        }
        public.extend_from_slice(key);
        secret.extend_from_slice(&*self.secret);
        let Took { began, computed, batch, cpu } = *took;
        let waited = began.saturating_duration_since(self.pending.submitted);
        Ok(ServerShare { group: self.pending.share.group(), public, secret, waited, computed, batch, cpu })
    }
}
