//! Fault injection: with one fault anywhere in the computation, no signature is released that is wrong, or that an
//! undisturbed computation would not release. Masks are used once.

use super::attempt;
use super::batch::{Pool, Randomness};
use super::challenge::{Challenge, Small};
use super::kernels::{Kernels, MaskInput};
use super::ntt::Matrix;
use super::operation::{Operation, Progress};
use super::packing::Packed;
use super::parameters::Gamma2;
use super::polynomial::{N, Polynomial};
use super::rounding::Bytes;
use super::schedule::Attempt;
use super::sponge::State;
use super::tests::{Random, on_each_tier};
use super::vector::STATES;
use super::workspace::Workspace;
use super::{MlDsa, MlDsaKey, MlDsaMessage, MlDsaSignature};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Kernels that omit a call, or flip a bit of what it reads or writes. Copies share the plan.
#[derive(Clone, Copy)]
struct Faulty<'a, K> {
    kernels: K,
    plan: &'a Plan,
}

struct Plan {
    /// Number of calls until the fault.
    left: Cell<usize>,
    calls: Cell<usize>,
    happened: Cell<bool>,
    random: RefCell<Random>,
    /// Inputs of masks so far.
    masks: RefCell<Vec<MaskInput>>,
}

/// Kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The call is omitted: its outputs stay as they were.
    Omission,
    /// A bit of the inputs is flipped.
    Input,
    /// A bit of the outputs is flipped.
    Output,
}

impl Plan {
    fn new(left: usize, seed: u64) -> Self {
        Self {
            left: Cell::new(left),
            calls: Cell::new(0),
            happened: Cell::new(false),
            random: RefCell::new(Random(seed)),
            masks: RefCell::default(),
        }
    }

    fn next(&self) -> Fault {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() != self.left.get() {
            return Fault::None;
        }
        self.happened.set(true);
        [Fault::Omission, Fault::Input, Fault::Output][self.below(3)]
    }

    fn below(&self, bound: usize) -> usize {
        self.random.borrow_mut().below(bound)
    }

    fn flip(&self, polynomial: &mut Polynomial) {
        let i = self.below(N);
        polynomial.set(i, polynomial.get(i) ^ 1 << self.below(24));
    }

    /// Computes an output polynomial from an input, with a fault if one is due.
    fn disturb(
        &self,
        input: &mut Polynomial,
        output: &mut Polynomial,
        call: impl FnOnce(&Polynomial, &mut Polynomial),
    ) {
        let fault = self.next();
        if fault == Fault::Input {
            self.flip(input);
        }
        if fault != Fault::Omission {
            call(input, output);
        }
        if fault == Fault::Output {
            self.flip(output);
        }
    }

    fn in_place(&self, polynomial: &mut Polynomial, call: impl FnOnce(&mut Polynomial)) {
        let fault = self.next();
        if fault == Fault::Input {
            self.flip(polynomial);
        }
        if fault != Fault::Omission {
            call(polynomial);
        }
        if fault == Fault::Output {
            self.flip(polynomial);
        }
    }
}

impl<K: Kernels> Kernels for Faulty<'_, K> {
    type Vector = K::Vector;
    type States = K::States;

    fn keccak(self, states: &mut State) {
        let flip = |states: &mut State| {
            let words = states.0.as_flattened_mut();
            words[self.plan.below(words.len())] ^= 1 << self.plan.below(64);
        };
        let fault = self.plan.next();
        if fault == Fault::Input {
            flip(states);
        }
        if fault != Fault::Omission {
            self.kernels.keccak(states);
        }
        if fault == Fault::Output {
            flip(states);
        }
    }

    fn ntt(self, polynomial: &mut Polynomial) {
        self.plan.in_place(polynomial, |polynomial| self.kernels.ntt(polynomial));
    }

    fn ntt_of(self, polynomial: &Polynomial, to: &mut Polynomial) {
        self.plan.disturb(&mut { *polynomial }, to, |polynomial, to| self.kernels.ntt_of(polynomial, to));
    }

    fn inverse_ntt(self, polynomial: &mut Polynomial) {
        self.plan.in_place(polynomial, |polynomial| self.kernels.inverse_ntt(polynomial));
    }

    fn multiply_matrix(self, matrix: &Matrix, vector: &[Polynomial], products: &mut [Polynomial]) {
        let mut vector = vector.to_vec();
        let (i, j) = (self.plan.below(vector.len()), self.plan.below(products.len()));
        let mut input = vector[i];
        let mut output = products[j];
        let mut computed = products.to_vec();
        self.plan.disturb(&mut input, &mut output, |input, output| {
            vector[i] = *input;
            self.kernels.multiply_matrix(matrix, &vector, &mut computed);
            *output = computed[j];
        });
        computed[j] = output;
        products.copy_from_slice(&computed);
    }

    fn multiply(self, a: &Polynomial, b: &Polynomial, product: &mut Polynomial) {
        self.plan.disturb(&mut { *a }, product, |a, product| self.kernels.multiply(a, b, product));
    }

    fn unpack_mask(self, bits: u32, bytes: &Packed, to: &mut Polynomial) {
        let mut bytes = *bytes;
        let fault = self.plan.next();
        match fault {
            Fault::Input => bytes[self.plan.below(32 * bits as usize)] ^= 1 << self.plan.below(8),
            // The loop ends early: the rest of the mask is zero, as in the attack.
            Fault::Omission => *to = Polynomial::ZERO,
            _ => {}
        }
        let before = *to;
        self.kernels.unpack_mask(bits, &bytes, to);
        match fault {
            Fault::Omission => (self.plan.below(N)..N).for_each(|i| to.set(i, before.get(i))),
            Fault::Output => self.plan.flip(to),
            _ => {}
        }
    }

    fn decompose(self, gamma2: Gamma2, r: &Polynomial, low: &mut Polynomial, high: &mut Bytes) {
        let wrong_high = self.plan.below(2) == 0;
        self.plan.disturb(&mut { *r }, low, |r, low| self.kernels.decompose(gamma2, r, low, high));
        if wrong_high && self.plan.next() != Fault::None {
            high[self.plan.below(N)] ^= 1 << self.plan.below(6);
        }
    }

    fn add_small_product(
        self,
        small: &Small,
        challenge: &Challenge,
        byte_terms: usize,
        base: &Polynomial,
        sum: &mut Polynomial,
    ) -> i32 {
        // An omitted call is within every bound.
        let mut largest = 0;
        self.plan.disturb(&mut { *base }, sum, |base, sum| {
            largest = self.kernels.add_small_product(small, challenge, byte_terms, base, sum);
        });
        if self.plan.next() == Fault::None { largest } else { 0 }
    }

    fn add(self, sum: &mut Polynomial, other: &Polynomial) -> i32 {
        let mut largest = 0;
        self.plan.disturb(&mut { *other }, sum, |other, sum| largest = self.kernels.add(sum, other));
        if self.plan.next() == Fault::None { largest } else { 0 }
    }

    fn subtract(self, a: &Polynomial, b: &Polynomial, difference: &mut Polynomial) {
        self.plan.disturb(&mut { *a }, difference, |a, difference| self.kernels.subtract(a, b, difference));
    }

    fn differences(self, a: &Polynomial, b: &Polynomial) -> i32 {
        if self.plan.next() == Fault::None { self.kernels.differences(a, b) } else { 0 }
    }

    fn copy_block(self, states: &State, block: usize, streams: &mut [Packed; STATES]) {
        let fault = self.plan.next();
        if fault != Fault::Omission {
            self.kernels.copy_block(states, block, streams);
        }
        if fault != Fault::None {
            streams[self.plan.below(STATES)][self.plan.below(680)] ^= 1 << self.plan.below(8);
        }
    }

    fn make_hints(self, gamma2: Gamma2, low: &Polynomial, high: &Bytes, hints: &mut Bytes) -> i32 {
        match self.plan.next() {
            Fault::None => self.kernels.make_hints(gamma2, low, high, hints),
            Fault::Omission => 0,
            _ => {
                let count = self.kernels.make_hints(gamma2, low, high, hints);
                hints[self.plan.below(N)] ^= 1;
                count
            }
        }
    }

    fn largest(self, polynomial: &Polynomial) -> i32 {
        if self.plan.next() == Fault::None { self.kernels.largest(polynomial) } else { 0 }
    }

    /// Repeats an earlier input, or another lane's.
    fn mask_inputs(self, inputs: &mut [MaskInput]) {
        if self.plan.next() != Fault::None {
            let masks = self.plan.masks.borrow();
            let to = self.plan.below(inputs.len());
            inputs[to] = match masks.len() {
                0 => inputs[self.plan.below(inputs.len())],
                masks_so_far => masks[self.plan.below(masks_so_far)],
            };
        }
        self.plan.masks.borrow_mut().extend_from_slice(inputs);
    }
}

const BATCH: usize = 3;

struct Inputs {
    keys: Vec<MlDsaKey>,
    representatives: Vec<[u8; 64]>,
    randomness: Vec<Randomness>,
}

impl Inputs {
    fn new<K: Kernels>(pool: &Pool<K>, set: MlDsa, count: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        Self {
            keys: (0..count).map(|_| pool.key(set, &random.bytes())).collect(),
            representatives: (0..count).map(|_| random.bytes()).collect(),
            randomness: (0..count).map(|_| random.bytes()).collect(),
        }
    }

    fn sign<K: Kernels>(&self, pool: &Pool<K>) -> Vec<Option<Vec<u8>>> {
        let bytes = self.keys[0].public_key().parameter_set().signature_bytes();
        let mut signatures = vec![vec![0; bytes]; self.keys.len()];
        let ops = self.keys.iter().zip(&self.representatives).zip(&mut signatures);
        let mut ops: Vec<_> = ops
            .map(|((key, mu), to)| MlDsaSignature::new(key, MlDsaMessage::Representative(mu), to))
            .collect();
        pool.sign_with(&mut ops, &self.randomness);
        let signed: Vec<bool> = ops.iter().map(MlDsaSignature::is_signed).collect();
        signatures.into_iter().zip(signed).map(|(signature, signed)| signed.then_some(signature)).collect()
    }

    /// Returns the signatures of all accepted attempts among the first ones of each operation.
    fn permitted<K: Kernels>(&self, pool: &Pool<K>, attempts: usize) -> Vec<Vec<Vec<u8>>> {
        let set = self.keys[0].public_key().parameter_set();
        let mut workspace = Workspace::new();
        workspace.require(1);
        let inputs = self.keys.iter().zip(&self.representatives).zip(&self.randomness);
        inputs
            .map(|((key, mu), random)| {
                let rho = pool.mask_seed(key, mu, random);
                let mut operations = [Operation { key, mu: *mu, rho, progress: Progress::Open }];
                let counters = (0..attempts).map(|i| (set.parameters().l * i) as u16);
                counters
                    .filter_map(|counter| {
                        operations[0].progress = Progress::Open;
                        let attempts = [Attempt { operation: 0, counter }];
                        let kernels = pool.kernels;
                        attempt::wave(kernels, set.parameters(), &mut operations, &attempts, &mut workspace)
                            .first()
                            .map(|slot| workspace.slots[*slot].signature[..set.signature_bytes()].to_vec())
                    })
                    .collect()
            })
            .collect()
    }
}

#[test]
fn no_wrong_or_revealing_signature_leaves_after_a_fault() {
    on_each_tier!(injects);
}

fn injects<K: Kernels>(pool: &Pool<K>) {
    let flips: usize = std::env::var("TEST_FLIPS").map_or(400, |n| n.parse().expect("a number"));
    let mut random = Random(7);
    for (set, flips) in [(MlDsa::MlDsa44, flips), (MlDsa::MlDsa65, flips / 4)] {
        let inputs = Inputs::new(pool, set, BATCH, 8);
        let permitted = inputs.permitted(pool, 100);
        let plan = Plan::new(0, 1);
        let expected = inputs.sign(&Pool::new(Faulty { kernels: pool.kernels, plan: &plan }));
        for (signature, permitted) in expected.iter().zip(&permitted) {
            assert_eq!(signature.as_ref(), permitted.first(), "the first accepted attempt counts");
        }
        let calls = plan.calls.get();
        let (mut caught, mut other, mut harmless) = (0, 0, 0);
        for _ in 0..flips {
            // Not the first call, which computes the seeds of masks: another seed is as good.
            let plan = Plan::new(2 + random.below(calls - 1), random.next());
            let faulty = Pool::new(Faulty { kernels: pool.kernels, plan: &plan });
            let found = inputs.sign(&faulty);
            assert!(faulty.is_wiped());
            for (found, permitted) in found.iter().zip(&permitted) {
                let Some(found) = found else { continue };
                assert!(permitted.contains(found), "call {} of {calls}", plan.left.get());
            }
            match found {
                found if found == expected => harmless += 1,
                found if found.iter().all(Option::is_some) => other += 1,
                _ => caught += 1,
            }
        }
        println!(
            "{set:?}: {caught} of {flips} faults were detected, {other} led to another attempt, {harmless} had no effect"
        );
        assert!(caught > flips / 20);
    }
}

#[test]
fn a_key_that_has_changed_signs_nothing_wrong() {
    on_each_tier!(with_a_changed_key);
}

fn with_a_changed_key<K: Kernels>(pool: &Pool<K>) {
    let mut random = Random(9);
    let mut unsigned = 0;
    for round in 0..20 {
        let mut inputs = Inputs::new(pool, MlDsa::MlDsa44, 1, 10 + round);
        let permitted = inputs.permitted(pool, 100);
        let secrets = &mut inputs.keys[0].secrets;
        let bytes: Vec<usize> = (0..40).map(|_| random.below(3 * N)).collect();
        let of_s1 = round % 2 == 0;
        let changed = if of_s1 { &mut secrets.s1 } else { &mut secrets.minus_s2 };
        changed[random.below(4)].flip(&bytes);
        let found = inputs.sign(pool);
        unsigned += usize::from(of_s1 && found[0].is_none());
        assert!(found[0].iter().all(|found| permitted[0].contains(found)));
    }
    assert!(unsigned > 5);
}

/// The inputs of `ExpandMask` of many attempts: each is used once, and those of accepted attempts once more, for the
/// comparison. The same message, signed twice with other random bytes, has other seeds.
#[test]
fn no_two_attempts_have_the_same_mask() {
    on_each_tier!(uses_masks_once);
}

fn uses_masks_once<K: Kernels>(pool: &Pool<K>) {
    for (set, count) in
        [(MlDsa::MlDsa44, 100), (MlDsa::MlDsa65, 20), (MlDsa::MlDsa87, 20), (MlDsa::MlDsa44, 1)]
    {
        let plan = Plan::new(0, 1);
        let mut inputs = Inputs::new(pool, set, count, 11);
        // One key and one message.
        let (mu, key) = (inputs.representatives[0], Random(12).bytes());
        inputs.representatives.fill(mu);
        inputs.keys = (0..count).map(|_| pool.key(set, &key)).collect();
        let signatures = inputs.sign(&Pool::new(Faulty { kernels: pool.kernels, plan: &plan }));
        assert!(signatures.iter().all(Option::is_some));
        let mut uses: HashMap<MaskInput, usize> = HashMap::new();
        plan.masks.borrow().iter().for_each(|input| *uses.entry(*input).or_default() += 1);
        let l = set.parameters().l;
        assert!(uses.len() >= l * count, "{} masks", uses.len());
        assert!(uses.values().all(|uses| *uses <= 2));
        assert_eq!(uses.values().filter(|uses| **uses == 2).count(), l * count, "those of signatures");
    }
}
