//! Fault injection: with one wrong bit anywhere in the computation, no wrong signature is released.

use super::P256Key;
use super::comb::{CombState, Kernels};
use super::element::{Element, U64x8};
use super::tests::{hash, ifma, random, signed};
use std::cell::{Cell, RefCell};

/// Kernels that flip one bit of their inputs or of their results. Copies share the plan.
#[derive(Clone, Copy)]
struct Faulty<'a, K> {
    kernels: K,
    plan: &'a Plan,
}

struct Plan {
    /// Number of calls until the fault.
    left: Cell<usize>,
    random: RefCell<Box<dyn FnMut() -> u64>>,
    happened: Cell<bool>,
}

impl Plan {
    fn is_due(&self) -> bool {
        let due = self.left.get() == 0 && !self.happened.get();
        self.left.set(self.left.get().saturating_sub(1));
        self.happened.set(self.happened.get() || due);
        due
    }

    fn below(&self, bound: usize) -> usize {
        (self.random.borrow_mut()() >> 8) as usize % bound
    }

    /// Flips one of the significant bits.
    fn flip(&self, element: &mut Element) {
        element.0[self.below(5)].0[self.below(8)] ^= 1 << self.below(52);
    }
}

impl<K: Kernels> Faulty<'_, K> {
    fn product(
        self,
        a: &Element,
        b: &Element,
        multiply: impl Fn(K, &Element, &Element) -> Element,
    ) -> Element {
        let (mut a, mut b) = (*a, *b);
        if !self.plan.is_due() {
            return multiply(self.kernels, &a, &b);
        }
        match self.plan.below(3) {
            0 => self.plan.flip(&mut a),
            1 => self.plan.flip(&mut b),
            _ => {
                let mut product = multiply(self.kernels, &a, &b);
                self.plan.flip(&mut product);
                return product;
            }
        }
        multiply(self.kernels, &a, &b)
    }
}

impl<K: Kernels> Kernels for Faulty<'_, K> {
    fn multiply(self, a: &Element, b: &Element) -> Element {
        self.product(a, b, K::multiply)
    }

    fn multiply_modulo_n(self, a: &Element, b: &Element) -> Element {
        self.product(a, b, K::multiply_modulo_n)
    }

    fn comb_begin(self, state: &mut CombState, digits: &U64x8) {
        self.kernels.comb_begin(state, digits);
    }

    /// Adds window by window: the fault is in the sum, in a digit, or omits a window.
    fn comb_add(self, state: &mut CombState, digits: &[U64x8], first: usize) {
        for (i, digits) in digits.iter().enumerate() {
            let mut digits = *digits;
            let mut leave_out = false;
            if self.plan.is_due() {
                match self.plan.below(8) {
                    0 => leave_out = true,
                    1 | 2 => digits.0[self.plan.below(8)] ^= 1 << self.plan.below(6),
                    // x, y, z and z^2, or the tags
                    _ => self.plan.flip(&mut state.0[self.plan.below(5)]),
                }
            }
            if !leave_out {
                self.kernels.comb_add(state, &[digits], first + i);
            }
        }
    }

    fn wipe_registers(self) {}
}

const BATCH: usize = 8;

fn batch(seed: u64) -> (Vec<P256Key>, Vec<[u8; 32]>, Vec<[u8; 64]>) {
    let mut random = random(seed);
    let mut bytes = || -> [u8; 32] { std::array::from_fn(|_| (random() >> 30) as u8) };
    let keys = (0..BATCH).map(|_| P256Key::new(&bytes()).expect("a key")).collect();
    let digests = (0..BATCH).map(|_| bytes()).collect();
    (keys, digests, (0..BATCH).map(|_| hash(&bytes())).collect())
}

#[test]
fn no_wrong_signature_leaves_after_a_flipped_bit() {
    let Some(ifma) = ifma() else { return };
    let flips = std::env::var("TEST_FLIPS").map_or(1_000, |n| n.parse().expect("a number"));
    let (keys, digests, hashes) = batch(3);
    let expected = signed(ifma, &keys, &digests, &hashes);
    assert!(expected.iter().all(Option::is_some));
    let mut random = random(4);
    let (mut caught, mut harmless) = (0, 0);
    for _ in 0..flips {
        // After the first two calls, which compute the nonce: another nonce is also valid.
        let left = 2 + (random() >> 8) as usize % 75;
        let of_plan = super::tests::random(random());
        let plan = Plan {
            left: Cell::new(left),
            random: RefCell::new(Box::new(of_plan)),
            happened: Cell::new(false),
        };
        let found = signed(Faulty { kernels: ifma, plan: &plan }, &keys, &digests, &hashes);
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.is_none() || found == expected, "a wrong signature was released, call {left}");
        }
        match found.iter().all(Option::is_some) {
            true => harmless += 1,
            false => caught += 1,
        }
    }
    println!("{caught} of {flips} flipped bits were detected, {harmless} had no effect");
    // A product of all lanes includes unused lanes.
    assert!(caught > 4 * flips / 5);
}

#[test]
fn a_key_that_has_changed_signs_nothing() {
    let Some(ifma) = ifma() else { return };
    let (mut keys, digests, hashes) = batch(5);
    keys[1].d[2] ^= 1 << 17;
    keys[6].montgomery[0] ^= 1;
    let found = signed(ifma, &keys, &digests, &hashes);
    let signed: Vec<usize> = (0..BATCH).filter(|lane| found[*lane].is_some()).collect();
    assert_eq!(signed, [0, 2, 3, 4, 5, 7]);
}
