//! Batches, for any implementation of the lanes.

use super::kernels::Kernels;
use super::key::{MlDsaKey, MlDsaPublicKey};
use super::operation::{Operation, Progress};
use super::parameters::MlDsa;
use super::shake::{Digest, NO_DIGEST, shake256};
use super::sign::sign;
use super::sponge::State;
use super::vector::STATES;
use super::verify::{Bound, Job, verify};
use super::workspace::Workspace;
use super::{MlDsaMessage, MlDsaSignature, MlDsaVerification};
use boring_sys as ffi;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Random bytes of a hedged signature.
pub(super) type Randomness = [u8; 32];

/// Kernels, and the idle memory of earlier batches.
pub(crate) struct Pool<K: Kernels> {
    pub(super) kernels: K,
    idle: Mutex<Vec<Box<Workspace>>>,
}

impl<K: Kernels> Pool<K> {
    pub(crate) fn new(kernels: K) -> Self {
        Self { kernels, idle: Mutex::default() }
    }

    pub(crate) fn key(&self, set: MlDsa, seed: &[u8; 32]) -> MlDsaKey {
        let key = MlDsaKey::from_seed(self.kernels, set, seed);
        self.kernels.wipe_registers();
        key
    }

    pub(crate) fn expanded_key(&self, set: MlDsa, encoded: &[u8]) -> Option<MlDsaKey> {
        let key = MlDsaKey::from_expanded(self.kernels, set, encoded);
        self.kernels.wipe_registers();
        key
    }

    pub(crate) fn public_key(&self, set: MlDsa, encoded: &[u8]) -> Option<MlDsaPublicKey> {
        MlDsaPublicKey::parse(self.kernels, set, encoded)
    }

    /// Signs every message of the batch; nothing without random numbers.
    pub(crate) fn sign(&self, batch: &mut [MlDsaSignature<'_>]) {
        if let Some(random) = Self::randomness(batch.len()) {
            self.sign_with(batch, &random);
        }
    }

    /// Returns random bytes for hedged signatures.
    pub(super) fn randomness(count: usize) -> Option<Zeroizing<Vec<Randomness>>> {
        let mut random: Zeroizing<Vec<Randomness>> = Zeroizing::new(vec![[0; 32]; count]);
        let bytes = random.as_flattened_mut();
        // SAFETY: the buffer has the given length.
        (unsafe { ffi::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) } == 1).then_some(random)
    }

    /// Signs with the given random bytes.
    pub(super) fn sign_with(&self, batch: &mut [MlDsaSignature<'_>], random: &[Randomness]) {
        let mut workspace = self.take();
        for set in MlDsa::ALL {
            let of_set = batch.iter_mut().zip(random).filter(|(op, _)| op.is_possible(set));
            let (mut ops, random): (Vec<_>, Vec<_>) = of_set.unzip();
            if ops.is_empty() {
                continue;
            }
            let mut operations = self.begin(&ops, &random);
            sign(self.kernels, set, &mut operations, &mut workspace, |i, signature| {
                ops[i].signature.copy_from_slice(signature);
                ops[i].signed = true;
            });
        }
        self.kernels.wipe_registers();
        self.give_back(workspace);
    }

    /// Computes message representatives and the seeds of masks.
    pub(super) fn begin<'a>(
        &self,
        ops: &[&mut MlDsaSignature<'a>],
        random: &[&Randomness],
    ) -> Vec<Operation<'a>> {
        let messages = ops.iter().map(|op| (&op.key.public, op.message));
        let representatives = self.representatives(messages);
        let mut operations = Vec::with_capacity(ops.len());
        let mut states = State::ZERO;
        for ((ops, random), representatives) in
            ops.chunks(STATES).zip(random.chunks(STATES)).zip(representatives.chunks(STATES))
        {
            let inputs = ops.iter().zip(random).zip(representatives).map(|((op, random), mu)| {
                let mut input = Zeroizing::new([0; 128]);
                input[..32].copy_from_slice(&op.key.secrets.seed);
                input[32..64].copy_from_slice(*random);
                input[64..].copy_from_slice(mu);
                input
            });
            let inputs: Vec<Zeroizing<[u8; 128]>> = inputs.collect();
            let inputs: Vec<&[u8]> = inputs.iter().map(|input| input.as_slice()).collect();
            let mut digests = [NO_DIGEST; STATES];
            shake256(self.kernels, &mut states, &inputs, &mut digests);
            for ((op, mu), digest) in ops.iter().zip(representatives).zip(&digests) {
                let rho = *digest.first_chunk().expect("a digest is longer");
                operations.push(Operation { key: op.key, mu: *mu, rho, progress: Progress::Open });
            }
            digests.as_flattened_mut().zeroize();
        }
        states.0.as_flattened_mut().zeroize();
        operations
    }

    /// Computes message representatives mu (FIPS 204, algorithm 7, line 6).
    fn representatives<'a>(
        &self,
        messages: impl Iterator<Item = (&'a MlDsaPublicKey, MlDsaMessage<'a>)>,
    ) -> Vec<[u8; 64]> {
        let inputs: Vec<Result<[u8; 64], Vec<u8>>> =
            messages.map(|(key, message)| message.input(key)).collect();
        let mut states = State::ZERO;
        let mut representatives = Vec::with_capacity(inputs.len());
        for inputs in inputs.chunks(STATES) {
            let hashed: Vec<&[u8]> =
                inputs.iter().filter_map(|input| input.as_ref().err().map(Vec::as_slice)).collect();
            let mut digests: [Digest; STATES] = [NO_DIGEST; STATES];
            if !hashed.is_empty() {
                shake256(self.kernels, &mut states, &hashed, &mut digests);
            }
            let mut digests = digests.iter().filter_map(|digest| digest.first_chunk());
            representatives.extend(inputs.iter().map(|input| match input {
                Ok(mu) => *mu,
                Err(_) => *digests.next().expect("a digest for each message"),
            }));
        }
        representatives
    }

    /// Verifies every signature of the batch.
    pub(crate) fn verify(&self, batch: &mut [MlDsaVerification<'_>]) {
        let mut workspace = self.take();
        workspace.require(STATES);
        for set in MlDsa::ALL {
            let mut ops: Vec<_> = batch.iter_mut().filter(|op| op.is_possible(set)).collect();
            for ops in ops.chunks_mut(STATES) {
                let representatives = self.representatives(ops.iter().map(|op| (op.key, op.message)));
                let jobs = ops.iter().zip(&representatives);
                let jobs: Vec<Job<'_>> = jobs
                    .map(|(op, mu)| Job { key: op.key, mu, signature: op.signature, bound: Bound::Unknown })
                    .collect();
                let valid = verify(self.kernels, set.parameters(), &jobs, &mut workspace);
                ops.iter_mut().zip(valid).for_each(|(op, valid)| op.valid = valid);
            }
        }
        self.give_back(workspace);
    }

    pub(super) fn take(&self) -> Box<Workspace> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(Workspace::new)
    }

    pub(super) fn give_back(&self, workspace: Box<Workspace>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }

    /// Returns the seed of an operation's masks.
    #[cfg(test)]
    pub(super) fn mask_seed(&self, key: &MlDsaKey, mu: &[u8; 64], random: &Randomness) -> [u8; 64] {
        let mut signature = [];
        let mut op = MlDsaSignature::new(key, MlDsaMessage::Representative(mu), &mut signature);
        self.begin(&[&mut op], &[random])[0].rho
    }

    /// Returns whether the idle memory has no data of signatures.
    #[cfg(test)]
    pub(super) fn is_wiped(&self) -> bool {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter().all(|workspace| workspace.is_empty())
    }
}

impl<K: Kernels> fmt::Debug for Pool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
