//! Attempts of signatures, one in each slot (FIPS 204, algorithm 7, lines 11 to 33).
//!
//! What the branches below depend on is public by design: whether an attempt is accepted, and at which polynomial it
//! was rejected (`docs/kernels/ml-dsa.md`).

use super::kernels::Kernels;
use super::masks;
use super::operation::{Operation, Progress};
use super::packing::{pack_high, pack_hints, pack_mask};
use super::parameters::Parameters;
use super::schedule::Attempt;
use super::shake::shake256;
use super::vector::STATES;
use super::verify::sample_challenges;
use super::workspace::{Scratch, Slot, Workspace};
use crate::secrecy::{declassify, declassify_in_place};

/// Makes the attempts of a wave, and returns the slots of those that are accepted and have passed their checks: at
/// most one of each operation. Its signature is in the slot.
pub(super) fn wave<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operations: &mut [Operation<'_>],
    attempts: &[Attempt],
    workspace: &mut Workspace,
) -> Vec<usize> {
    debug_assert!(distinct(operations, attempts), "two attempts share a mask");
    let Workspace { slots, scratch } = workspace;
    let slots = &mut slots[..attempts.len()];
    let all: Vec<usize> = (0..slots.len()).collect();
    expand_masks(kernels, parameters, operations, attempts, &all, scratch, |scratch, stream, slot, i| {
        kernels.unpack_mask(parameters.mask_bits, &scratch.streams[stream], &mut slots[slot].y[i]);
    });
    for (slot, attempt) in slots.iter_mut().zip(attempts) {
        commit(kernels, parameters, &operations[attempt.operation], slot, scratch);
    }
    hash_commitments(kernels, parameters, slots, scratch);
    let mut accepted = Vec::with_capacity(slots.len());
    for (i, (slot, attempt)) in slots.iter_mut().zip(attempts).enumerate() {
        let operation = &mut operations[attempt.operation];
        if operation.progress == Progress::Open && respond(kernels, parameters, operation, slot, scratch) {
            operation.progress = Progress::Accepted;
            accepted.push(i);
        }
    }
    confirm(kernels, parameters, operations, attempts, &mut accepted, workspace);
    accepted
}

/// Expands the masks of the given slots, eight polynomials at a time, and calls `take` for each, with its stream.
fn expand_masks<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operations: &[Operation<'_>],
    attempts: &[Attempt],
    slots: &[usize],
    scratch: &mut Scratch,
    mut take: impl FnMut(&mut Scratch, usize, usize, usize),
) {
    let polynomials = slots.iter().flat_map(|slot| (0..parameters.l).map(move |i| (*slot, i)));
    let polynomials: Vec<(usize, usize)> = polynomials.collect();
    for polynomials in polynomials.chunks(STATES) {
        for (input, (slot, i)) in scratch.inputs.iter_mut().zip(polynomials) {
            let Attempt { operation, counter } = attempts[*slot];
            *input = masks::input(&operations[operation].rho, counter + *i as u16);
        }
        masks::expand(kernels, polynomials.len(), scratch);
        for (stream, (slot, i)) in polynomials.iter().enumerate() {
            take(scratch, stream, *slot, *i);
        }
    }
}

/// Computes w = A y, its parts, and the input of the challenge's hash.
fn commit<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operation: &Operation<'_>,
    slot: &mut Slot,
    scratch: &mut Scratch,
) {
    let (vector, products) = (&mut scratch.vector[..parameters.l], &mut scratch.products[..parameters.k]);
    vector.iter_mut().zip(&slot.y).for_each(|(to, y)| kernels.ntt_of(y, to));
    kernels.multiply_matrix(&operation.key.public.matrix, vector, products);
    slot.message[..64].copy_from_slice(&operation.mu);
    let packed = slot.message[64..].chunks_exact_mut(parameters.high_bytes());
    for (i, (w, packed)) in products.iter_mut().zip(packed).enumerate() {
        kernels.inverse_ntt(w);
        kernels.decompose(parameters.gamma2, w, &mut slot.low[i], &mut slot.high[i]);
        pack_high(parameters.gamma2, &slot.high[i], packed);
    }
}

/// Computes the challenges.
fn hash_commitments<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    slots: &mut [Slot],
    scratch: &mut Scratch,
) {
    let Scratch { states, digests, .. } = &mut *scratch;
    let messages: Vec<&[u8]> = slots.iter().map(|slot| slot.message(parameters)).collect();
    shake256(kernels, states, &messages, digests);
    for (slot, digest) in slots.iter_mut().zip(digests) {
        let len = slot.hash.len();
        slot.hash.copy_from_slice(&digest[..len]);
        declassify_in_place(&mut slot.hash);
    }
    sample_challenges(kernels, parameters, slots, scratch);
}

/// Computes the response z and the hints, and stores the signature, unless the attempt is rejected.
fn respond<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operation: &Operation<'_>,
    slot: &mut Slot,
    scratch: &mut Scratch,
) -> bool {
    let Scratch { vector, products, responses, hints, .. } = scratch;
    let secrets = &operation.key.secrets;
    // r0 first: it rejects more attempts than z.
    for ((s2, low), r0) in secrets.minus_s2.iter().zip(&slot.low).zip(&mut *products) {
        let largest = kernels.add_small_product(s2, &slot.challenge, parameters.byte_terms(), low, r0);
        if declassify(largest >= parameters.gamma2.value() - parameters.beta()) {
            return false;
        }
    }
    for ((s1, y), z) in secrets.s1.iter().zip(&slot.y).zip(&mut *responses) {
        let largest = kernels.add_small_product(s1, &slot.challenge, parameters.byte_terms(), y, z);
        if declassify(largest >= parameters.gamma1() - parameters.beta()) {
            return false;
        }
    }
    let [challenge, ..] = vector;
    *challenge = slot.challenge.polynomial();
    kernels.ntt(challenge);
    let mut count = 0;
    for (i, (t0, low)) in secrets.t0.iter().zip(products).enumerate() {
        let product = &mut slot.product[i];
        kernels.multiply(challenge, t0, product);
        kernels.inverse_ntt(product);
        let largest = kernels.add(low, product);
        if declassify(largest >= parameters.gamma2.value()) {
            return false;
        }
        count += kernels.make_hints(parameters.gamma2, low, &slot.high[i], &mut hints[i]);
    }
    if declassify(count > parameters.omega as i32) {
        return false;
    }
    declassify_in_place(hints);
    let (hash, rest) = slot.signature.split_at_mut(parameters.challenge);
    hash.copy_from_slice(&slot.hash[..parameters.challenge]);
    let (packed, rest) = rest.split_at_mut(parameters.mask_bytes() * parameters.l);
    for (z, packed) in responses.iter().zip(packed.chunks_exact_mut(parameters.mask_bytes())) {
        pack_mask(parameters.mask_bits, z, packed);
    }
    pack_hints(parameters, &hints[..parameters.k], &mut rest[..parameters.omega + parameters.k]);
    true
}

/// Computes the masks of the accepted attempts again, from their seeds, and the responses, and compares. A signature
/// with a mask that is repeated or too short verifies, but reveals the key.
fn confirm<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operations: &mut [Operation<'_>],
    attempts: &[Attempt],
    accepted: &mut Vec<usize>,
    workspace: &mut Workspace,
) {
    let Workspace { slots, scratch } = workspace;
    let mut sound = vec![true; slots.len()];
    expand_masks(kernels, parameters, operations, attempts, accepted, scratch, |scratch, stream, slot, i| {
        let operation = &operations[attempts[slot].operation];
        sound[slot] &= response_is_sound(kernels, parameters, operation, &slots[slot], scratch, stream, i);
    });
    accepted.retain(|slot| {
        if !sound[*slot] {
            operations[attempts[*slot].operation].progress = Progress::Faulty;
        }
        sound[*slot]
    });
}

/// Returns whether polynomial `i` of the mask and of the response in the signature are those of a new computation from
/// the stream, and the response is within its bound.
fn response_is_sound<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    operation: &Operation<'_>,
    slot: &Slot,
    scratch: &mut Scratch,
    stream: usize,
    i: usize,
) -> bool {
    let Scratch { vector, streams, .. } = scratch;
    let [mask, response, released, ..] = vector;
    kernels.unpack_mask(parameters.mask_bits, &streams[stream], mask);
    let s1 = &operation.key.secrets.s1[i];
    let largest = kernels.add_small_product(s1, &slot.challenge, parameters.byte_terms(), mask, response);
    let bytes = parameters.mask_bytes();
    streams[stream][..bytes].copy_from_slice(&slot.signature[parameters.challenge + bytes * i..][..bytes]);
    kernels.unpack_mask(parameters.mask_bits, &streams[stream], released);
    let difference = kernels.differences(mask, &slot.y[i]) | kernels.differences(response, released);
    declassify(difference == 0) & declassify(largest < parameters.gamma1() - parameters.beta())
}

/// Returns whether no two attempts have the same seed and counter.
fn distinct(operations: &[Operation<'_>], attempts: &[Attempt]) -> bool {
    let same_seed = |a: usize, b: usize| {
        let pairs = operations[a].rho.iter().zip(&operations[b].rho);
        declassify(pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0)
    };
    attempts.iter().enumerate().all(|(i, a)| {
        let others = attempts[..i].iter().filter(|b| a.counter == b.counter);
        others.clone().all(|b| !same_seed(a.operation, b.operation))
    })
}
