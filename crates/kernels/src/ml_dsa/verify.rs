//! Verification of up to eight signatures (FIPS 204, algorithm 8). All data is public, except that the challenges of
//! attempts are sampled here too.

use super::challenge::Sampler;
use super::kernels::Kernels;
use super::key::MlDsaPublicKey;
use super::packing::{Hints, pack_high};
use super::parameters::Parameters;
use super::polynomial::Polynomial;
use super::rounding::{Bytes, use_hint};
use super::shake::shake256;
use super::vector::STATES;
use super::workspace::{Scratch, Slot, Workspace};
use crate::secrecy::declassify;

/// Signature to verify; as long as its parameter set's.
pub(super) struct Job<'a> {
    pub(super) key: &'a MlDsaPublicKey,
    /// Message representative.
    pub(super) mu: &'a [u8; 64],
    pub(super) signature: &'a [u8],
    pub(super) bound: Bound<'a>,
}

/// Whether the signer's bound on the low part is checked too, and by what.
#[derive(Clone, Copy)]
pub(super) enum Bound<'a> {
    /// Verification without the bound, which only the signer can check.
    Unknown,
    /// c t0
    Product(&'a [Polynomial]),
    /// t0, transformed.
    T0(&'a [Polynomial]),
}

/// Returns which signatures are valid.
pub(super) fn verify<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    jobs: &[Job<'_>],
    workspace: &mut Workspace,
) -> [bool; STATES] {
    let Workspace { slots, scratch } = workspace;
    let slots = &mut slots[..jobs.len()];
    for (slot, job) in slots.iter_mut().zip(jobs) {
        slot.hash[..parameters.challenge].copy_from_slice(&job.signature[..parameters.challenge]);
    }
    sample_challenges(kernels, parameters, slots, scratch);
    let mut valid = [false; STATES];
    for ((slot, job), valid) in slots.iter_mut().zip(jobs).zip(&mut valid) {
        *valid = recompute(kernels, parameters, job, slot, scratch).is_some();
    }
    let messages: Vec<&[u8]> = slots.iter().map(|slot| slot.message(parameters)).collect();
    shake256(kernels, &mut scratch.states, &messages, &mut scratch.digests);
    for ((job, digest), valid) in jobs.iter().zip(&scratch.digests).zip(&mut valid) {
        *valid &= digest[..parameters.challenge] == job.signature[..parameters.challenge];
    }
    valid
}

/// Computes w1 from the signature, and the input of its hash. `None` if the signature is malformed.
fn recompute<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    job: &Job<'_>,
    slot: &mut Slot,
    scratch: &mut Scratch,
) -> Option<()> {
    let Scratch { vector, products, responses: [of_t0, ..], streams, .. } = scratch;
    let (responses, hints) =
        job.signature[parameters.challenge..].split_at(parameters.mask_bytes() * parameters.l);
    let hints = Hints::parse(parameters, hints)?;
    for (z, packed) in vector.iter_mut().zip(responses.chunks_exact(parameters.mask_bytes())) {
        streams[0][..packed.len()].copy_from_slice(packed);
        kernels.unpack_mask(parameters.mask_bits, &streams[0], z);
        (kernels.largest(z) < parameters.gamma1() - parameters.beta()).then_some(())?;
        kernels.ntt(z);
    }
    let (vector, products) = (&mut vector[..=parameters.l], &mut products[..parameters.k]);
    vector[parameters.l] = slot.challenge.polynomial();
    kernels.ntt(&mut vector[parameters.l]);
    kernels.multiply_matrix(&job.key.matrix, vector, products);
    slot.message[..64].copy_from_slice(job.mu);
    let packed = slot.message[64..].chunks_exact_mut(parameters.high_bytes());
    for (i, (w, packed)) in products.iter_mut().zip(packed).enumerate() {
        let (low, high) = (&mut slot.low[i], &mut slot.high[i]);
        kernels.inverse_ntt(w);
        let product = match job.bound {
            Bound::Unknown => None,
            Bound::Product(products) => Some(&products[i]),
            Bound::T0(t0) => {
                kernels.multiply(&vector[parameters.l], &t0[i], of_t0);
                kernels.inverse_ntt(of_t0);
                Some(&*of_t0)
            }
        };
        if let Some(product) = product {
            low_part_is_in_bound(kernels, parameters, w, product, low, high).then_some(())?;
        }
        kernels.decompose(parameters.gamma2, w, low, high);
        for position in hints.of(i) {
            high[position] = use_hint(parameters.gamma2, low.get(position), high[position]);
        }
        pack_high(parameters.gamma2, high, packed);
    }
    Some(())
}

/// Returns whether the signer has to accept w - c s2, which is c t0 less than what the signature yields: a signature
/// beyond the bound verifies, but reveals the key.
fn low_part_is_in_bound<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    w: &Polynomial,
    product: &Polynomial,
    low: &mut Polynomial,
    high: &mut Bytes,
) -> bool {
    let mut r = Polynomial::ZERO;
    kernels.subtract(w, product, &mut r);
    kernels.decompose(parameters.gamma2, &r, low, high);
    declassify(kernels.largest(low) < parameters.gamma2.value() - parameters.beta())
}

/// Samples the challenges of the slots from their hashes.
pub(super) fn sample_challenges<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    slots: &mut [Slot],
    scratch: &mut Scratch,
) {
    let Scratch { states, digests, .. } = scratch;
    let hashes: Vec<&[u8]> = slots.iter().map(|slot| &slot.hash[..parameters.challenge]).collect();
    shake256(kernels, states, &hashes, digests);
    let mut samplers: Vec<Sampler> =
        digests[..slots.len()].iter().map(|digest| Sampler::new(parameters.tau, digest)).collect();
    loop {
        let challenges = samplers.iter().map(Sampler::finish);
        let complete = slots.iter_mut().zip(challenges).fold(true, |complete, (slot, challenge)| {
            slot.challenge = challenge.unwrap_or(slot.challenge);
            complete & challenge.is_some()
        });
        if complete {
            return;
        }
        // Practically never: a block has more than twice the bytes that a challenge takes.
        kernels.keccak(states);
        for (state, sampler) in samplers.iter_mut().enumerate() {
            states.squeeze(state, &mut digests[state]);
            sampler.sample(&digests[state]);
        }
    }
}
