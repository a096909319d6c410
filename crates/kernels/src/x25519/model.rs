//! Kernels in plain arithmetic, one lane at a time: the reference for the assembly, and the implementation for
//! valgrind, which does not support AVX-512.

use super::batch::{CombState, Differences, Digits, Kernels, LadderState};
use super::element::{Element, Layout};
use std::marker::PhantomData;

#[derive(Clone, Copy)]
pub(super) struct Model<L>(pub(super) PhantomData<L>);

impl<L: Layout> Kernels for Model<L> {
    type Layout = L;
    const AHEAD: usize = 1;

    fn multiply(self, a: &Element<L>, b: &Element<L>) -> Element<L> {
        each_lane(|lane| times(&number(a, lane), &number(b, lane)))
    }

    fn square(self, x: &Element<L>, count: usize) -> Element<L> {
        each_lane(|lane| (0..count).fold(number(x, lane), |x, _| times(&x, &x)))
    }

    fn ladder(self, state: &mut LadderState<L>, differences: &Differences) {
        climb_lanes(state, differences, 0);
    }

    fn ladders(self, states: &mut [LadderState<L>; 2], differences: &[Differences; 2]) {
        for (ahead, (state, differences)) in states.iter_mut().zip(differences).enumerate() {
            climb_lanes(state, differences, ahead);
        }
    }

    /// Uses the ladder from u = 9, which gives the same fraction.
    fn comb(self, state: &mut CombState<L>, digits: &Digits) {
        for lane in 0..L::LANES {
            // Sum modulo 2^256 of 2^255 and the digits.
            let mut scalar = [0, 0, 0, 1 << 63];
            for i in 0..digits.0.len() {
                let digit = i128::from(digits.get::<L>(i, lane) as i64);
                let mut carry = 0;
                for (w, word) in scalar.iter_mut().enumerate() {
                    let at = 64 * w as i32 - 5 * i as i32;
                    let part = match at {
                        128.. => (digit >> 127) as u64,
                        0..128 => (digit >> at) as u64,
                        -63..0 => (digit << -at) as u64,
                        _ => 0,
                    };
                    let sum = u128::from(*word) + u128::from(part) + carry;
                    (*word, carry) = (sum as u64, sum >> 64);
                }
            }
            let bit = |i: usize| scalar[i / 64] >> (i % 64) & 1;
            let bits = (0..255).rev().map(|i| bit(i) ^ bit(i + 1));
            let (x, z) = climb(&[9, 0, 0, 0], bits);
            state.0[0].put(lane, &x);
            state.0[3].put(lane, &z);
        }
    }

    fn wipe_registers() {}
}

/// Computes the ladder of every lane, with zeros before the differences.
fn climb_lanes<L: Layout>(state: &mut LadderState<L>, differences: &Differences, zeros: usize) {
    for lane in 0..L::LANES {
        let bit = |i: usize| differences.get::<L>(i / 64, lane) >> (63 - i % 64) & 1;
        let bits = (0..256).map(|i| if i < zeros { 0 } else { bit(i - zeros) });
        let (x, z) = climb(&number(&state.0[0], lane), bits);
        state.0[1].put(lane, &x);
        state.0[2].put(lane, &z);
    }
}

/// Ladder of RFC 7748, section 5, with the bits' differences.
fn climb(x1: &[u64; 4], differences: impl Iterator<Item = u64>) -> ([u64; 4], [u64; 4]) {
    let (mut x2, mut z2, mut x3, mut z3) = ([1, 0, 0, 0], [0; 4], *x1, [1, 0, 0, 0]);
    for difference in differences {
        swap(difference, &mut x2, &mut x3);
        swap(difference, &mut z2, &mut z3);
        let (a, b, c, d) = (plus(&x2, &z2), minus(&x2, &z2), plus(&x3, &z3), minus(&x3, &z3));
        let (da, cb, aa, bb) = (times(&d, &a), times(&c, &b), times(&a, &a), times(&b, &b));
        let e = minus(&aa, &bb);
        let (sum, difference) = (plus(&da, &cb), minus(&da, &cb));
        x3 = times(&sum, &sum);
        z3 = times(x1, &times(&difference, &difference));
        x2 = times(&aa, &bb);
        z2 = times(&e, &plus(&aa, &times(&[121_665, 0, 0, 0], &e)));
    }
    (x2, z2)
}

fn swap(bit: u64, a: &mut [u64; 4], b: &mut [u64; 4]) {
    // Opaque, so that the compiler does not make a branch of it.
    let mask = std::hint::black_box(bit.wrapping_neg());
    for (a, b) in a.iter_mut().zip(b) {
        let flips = (*a ^ *b) & mask;
        *a ^= flips;
        *b ^= flips;
    }
}

/// Returns the number in a lane, from the significant bits of each digit.
pub(super) fn number<L: Layout>(element: &Element<L>, lane: usize) -> [u64; 4] {
    let (low, above) = element.words(lane);
    reduced(&add_small(&low, 38 * above).0)
}

fn each_lane<L: Layout>(f: impl Fn(usize) -> [u64; 4]) -> Element<L> {
    let mut element = Element::default();
    (0..L::LANES).for_each(|lane| element.put(lane, &f(lane)));
    element
}

fn times(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut product = [0u64; 8];
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, b) in b.iter().enumerate() {
            let sum = u128::from(*a) * u128::from(*b) + u128::from(product[i + j]) + carry;
            (product[i + j], carry) = (sum as u64, sum >> 64);
        }
        product[i + 4] = carry as u64;
    }
    let mut carry = 0;
    let folded: [u64; 4] = std::array::from_fn(|i| {
        let sum = u128::from(product[i]) + 38 * u128::from(product[i + 4]) + carry;
        carry = sum >> 64;
        sum as u64
    });
    let (folded, carry) = add_small(&folded, 38 * carry as u64);
    reduced(&add_small(&folded, 38 * carry).0)
}

fn plus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = 0;
    let sum = std::array::from_fn(|i| {
        let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
        carry = sum >> 64;
        sum as u64
    });
    reduced(&sum)
}

/// Computes a - b = a + (2^255 - 1 - b) - 18 modulo p, both reduced.
fn minus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut complement = b.map(|word| !word);
    complement[3] &= u64::MAX >> 1;
    // 2^255 - 1 - b - 18 = p - b is not negative.
    let mut borrow = 18;
    let negated = complement.map(|word| {
        let (word, less) = word.overflowing_sub(borrow);
        borrow = u64::from(less);
        word
    });
    plus(a, &negated)
}

/// Reduces a number below 2^256 modulo p.
fn reduced(number: &[u64; 4]) -> [u64; 4] {
    let top = |number: &[u64; 4]| number[3] >> 63;
    let mut low = *number;
    low[3] &= u64::MAX >> 1;
    let low = add_small(&low, 19 * top(number)).0;
    let above = top(&add_small(&low, 19).0);
    let mut out = add_small(&low, 19 * above).0;
    out[3] &= u64::MAX >> 1;
    out
}

fn add_small(number: &[u64; 4], small: u64) -> ([u64; 4], u64) {
    let mut carry = small;
    let sum = number.map(|word| {
        let (word, more) = word.overflowing_add(carry);
        carry = u64::from(more);
        word
    });
    (sum, carry)
}
