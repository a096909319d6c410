//! Signatures that another device computes: the lanes begin them, and verify them before they are released.

use super::batch::{Pool, Randomness};
use super::challenge::Small;
use super::kernels::Kernels;
use super::key::MlDsaKey;
use super::message::{MlDsaMessage, MlDsaSignature};
use super::operation::{Operation, Progress};
use super::parameters::MlDsa;
use super::polynomial::{N, Polynomial};
use super::sign::sign;
use super::vector::STATES;
use super::verify::{Bound, Job, verify};
use super::workspace::wipe;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Inputs of a signature (FIPS 204, algorithm 7, lines 6 and 7).
pub struct MlDsaStart {
    /// Message representative.
    pub mu: [u8; 64],
    /// Seed of the masks, rho'. It is as secret as the key.
    pub rho: [u8; 64],
}

/// Signature that another device has computed.
#[derive(Clone, Copy)]
pub struct MlDsaCandidate<'a> {
    /// Private key.
    pub key: &'a MlDsaKey,
    /// Message representative.
    pub mu: &'a [u8; 64],
    /// Signature.
    pub signature: &'a [u8],
}

/// Numbers of a private key, polynomial after polynomial, nearest to zero modulo q. They are as secret as the key.
pub struct MlDsaNumbers {
    /// A, row by row, transformed in the order of FIPS 204 (algorithm 41).
    pub matrix: Vec<i32>,
    /// s1
    pub s1: Vec<i32>,
    /// s2
    pub s2: Vec<i32>,
    /// t0, transformed.
    pub t0: Vec<i32>,
}

impl<K: Kernels> Pool<K> {
    /// Begins hedged signatures; `None` without random numbers, or for a context that is too long.
    pub(crate) fn start(&self, messages: &[(&MlDsaKey, MlDsaMessage<'_>)]) -> Option<Vec<MlDsaStart>> {
        let random: Zeroizing<Vec<Randomness>> = Self::randomness(messages.len())?;
        let random: Vec<&Randomness> = random.iter().collect();
        let mut nothing: Vec<[u8; 0]> = vec![[]; messages.len()];
        let mut ops: Vec<MlDsaSignature<'_>> = messages
            .iter()
            .zip(&mut nothing)
            .map(|((key, message), nothing)| MlDsaSignature::new(key, *message, nothing))
            .collect();
        ops.iter().all(MlDsaSignature::is_message_valid).then_some(())?;
        let ops: Vec<&mut MlDsaSignature<'_>> = ops.iter_mut().collect();
        let mut operations = self.begin(&ops, &random);
        let starts = operations.iter().map(|op| MlDsaStart { mu: op.mu, rho: op.rho }).collect();
        operations.iter_mut().for_each(|operation| operation.rho.zeroize());
        self.kernels.wipe_registers();
        Some(starts)
    }

    /// Signs with the given representative and seed of masks.
    pub(crate) fn sign_from(&self, key: &MlDsaKey, mu: &[u8; 64], rho: &[u8; 64]) -> Option<Vec<u8>> {
        let mut workspace = self.take();
        let mut operations = [Operation { key, mu: *mu, rho: *rho, progress: Progress::Open }];
        let mut signature = None;
        sign(self.kernels, key.public.set, &mut operations, &mut workspace, |_, bytes| {
            signature = Some(bytes.to_vec());
        });
        self.kernels.wipe_registers();
        self.give_back(workspace);
        signature
    }

    /// Returns which signatures are valid, and within the signer's bounds: others may reveal the key.
    pub(crate) fn confirm(&self, candidates: &[MlDsaCandidate<'_>]) -> Vec<bool> {
        let mut valid = vec![false; candidates.len()];
        let mut workspace = self.take();
        workspace.require(STATES);
        for set in MlDsa::ALL {
            let of_set = (0..candidates.len()).filter(|i| {
                let MlDsaCandidate { key, signature, .. } = candidates[*i];
                key.public.set == set && signature.len() == set.signature_bytes()
            });
            let indexes: Vec<usize> = of_set.collect();
            for indexes in indexes.chunks(STATES) {
                let jobs = indexes.iter().map(|i| {
                    let MlDsaCandidate { key, mu, signature } = candidates[*i];
                    Job { key: &key.public, mu, signature, bound: Bound::T0(&key.secrets.t0) }
                });
                let jobs: Vec<Job<'_>> = jobs.collect();
                let confirmed = verify(self.kernels, set.parameters(), &jobs, &mut workspace);
                indexes.iter().zip(confirmed).for_each(|(i, confirmed)| valid[*i] = confirmed);
            }
        }
        workspace.wipe(STATES);
        self.kernels.wipe_registers();
        self.give_back(workspace);
        valid
    }
}

impl MlDsaKey {
    /// Numbers of the key, for a device with another implementation.
    pub fn numbers(&self) -> MlDsaNumbers {
        let parameters = self.public.set.parameters();
        let entries = (0..parameters.k).flat_map(|row| (0..parameters.l).map(move |column| (row, column)));
        let entries: Vec<Polynomial> =
            entries.map(|(row, column)| self.public.matrix.get(row, column)).collect();
        let small = |polynomials: &[Small]| {
            let mut numbers = Vec::with_capacity(polynomials.len() * N);
            numbers.extend(polynomials.iter().flat_map(Small::coefficients));
            numbers
        };
        let mut s2 = small(&self.secrets.minus_s2);
        s2.iter_mut().for_each(|number| *number = -*number);
        MlDsaNumbers {
            matrix: in_order(&entries),
            s1: small(&self.secrets.s1),
            s2,
            t0: in_order(&self.secrets.t0),
        }
    }
}

/// Converts transforms to the standard's order.
fn in_order(transforms: &[Polynomial]) -> Vec<i32> {
    let mut numbers = Vec::with_capacity(transforms.len() * N);
    for transform in transforms {
        let mut standard = transform.transposed();
        numbers.extend(standard.coefficients());
        wipe(std::slice::from_mut(&mut standard), Polynomial::ZERO);
    }
    numbers
}

impl Drop for MlDsaStart {
    fn drop(&mut self) {
        self.mu.zeroize();
        self.rho.zeroize();
    }
}

impl Drop for MlDsaNumbers {
    fn drop(&mut self) {
        let Self { matrix, s1, s2, t0 } = self;
        [matrix, s1, s2, t0].into_iter().for_each(Zeroize::zeroize);
    }
}

impl fmt::Debug for MlDsaStart {
    /// Does not show the seeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaStart").finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaCandidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaCandidate").finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaNumbers {
    /// Does not show the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaNumbers").finish_non_exhaustive()
    }
}
