//! Signatures (FIPS 204, algorithm 7), in waves of attempts.

use super::attempt;
use super::kernels::Kernels;
use super::operation::{Operation, Progress};
use super::parameters::MlDsa;
use super::polynomial::Polynomial;
use super::schedule::{SLOTS, Schedule};
use super::verify::{self, Bound, Job};
use super::workspace::{Workspace, wipe};
use crate::secrecy::declassify_in_place;
use zeroize::Zeroize;

/// Accepted signature that is not yet verified.
struct Candidate {
    operation: usize,
    signature: Vec<u8>,
    /// c t0
    product: Vec<Polynomial>,
}

/// Signs with keys of one parameter set, and passes signatures that pass all checks to `release`, with the numbers of
/// their operations.
pub(super) fn sign<K: Kernels>(
    kernels: K,
    set: MlDsa,
    operations: &mut [Operation<'_>],
    workspace: &mut Workspace,
    mut release: impl FnMut(usize, &[u8]),
) {
    workspace.require(SLOTS);
    let mut schedule = Schedule::new(set.parameters(), operations.len());
    let mut candidates = Vec::with_capacity(2 * SLOTS);
    let (mut more, mut used) = (!operations.is_empty(), 0);
    while more {
        let wave = schedule.wave();
        used = used.max(wave.len());
        for slot in attempt::wave(kernels, set.parameters(), operations, &wave, workspace) {
            let slot_memory = &mut workspace.slots[slot];
            let signature = &mut slot_memory.signature[..set.signature_bytes()];
            declassify_in_place(signature);
            candidates.push(Candidate {
                operation: wave[slot].operation,
                signature: signature.to_vec(),
                product: slot_memory.product[..set.parameters().k].to_vec(),
            });
        }
        more = schedule.finish(|operation| operations[operation].progress != Progress::Open);
        while candidates.len() >= SLOTS || !more && !candidates.is_empty() {
            let last = candidates.len().saturating_sub(SLOTS);
            used = used.max(candidates.len() - last);
            release_sound(kernels, set, operations, &candidates[last..], workspace, &mut release);
            for mut candidate in candidates.drain(last..) {
                wipe(&mut candidate.signature, 0);
                wipe(&mut candidate.product, Polynomial::ZERO);
            }
        }
    }
    workspace.wipe(used);
    operations.iter_mut().for_each(|operation| operation.rho.zeroize());
}

/// Verifies up to eight candidates, and releases those that are valid.
fn release_sound<K: Kernels>(
    kernels: K,
    set: MlDsa,
    operations: &[Operation<'_>],
    candidates: &[Candidate],
    workspace: &mut Workspace,
    release: &mut impl FnMut(usize, &[u8]),
) {
    let jobs = candidates.iter().map(|candidate| {
        let operation = &operations[candidate.operation];
        Job {
            key: &operation.key.public,
            mu: &operation.mu,
            signature: &candidate.signature,
            bound: Bound::Product(&candidate.product),
        }
    });
    let jobs: Vec<Job<'_>> = jobs.collect();
    let valid = verify::verify(kernels, set.parameters(), &jobs, workspace);
    for ((candidate, job), _) in candidates.iter().zip(&jobs).zip(valid).filter(|(_, valid)| *valid) {
        release(candidate.operation, job.signature);
    }
}
