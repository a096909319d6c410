//! Kernels in plain arithmetic, one lane at a time: the reference for the assembly, and the implementation for
//! valgrind, which does not support AVX-512.

use super::comb::{CombState, Kernels, TABLE, WINDOW_BITS};
use super::element::{DIGIT_MASK, Element, U64x8};
use super::modulus::{Modulus, N, Number, P, is_zero, select, subtract};
use super::multiple::{self, PointKernels, PointState, Table};
use crate::x86_64::p256::table;

#[derive(Clone, Copy)]
pub(super) struct Model;

impl Kernels for Model {
    fn multiply(self, a: &Element, b: &Element) -> Element {
        multiply(a, b, &P)
    }

    fn multiply_modulo_n(self, a: &Element, b: &Element) -> Element {
        multiply(a, b, &N)
    }

    fn comb_begin(self, state: &mut CombState, digits: &U64x8) {
        let one = Element::broadcast(&P.one);
        (state.0[2], state.0[3]) = (one, one);
        for lane in 0..8 {
            let (x, y, tag) = entry(&table()[0], digits.0[lane]);
            state.0[0].put(lane, &x);
            state.0[1].put(lane, &y);
            state.0[4].0[0].0[lane] = tag;
        }
    }

    /// Textbook addition of Jacobian and affine coordinates.
    fn comb_add(self, state: &mut CombState, digits: &[U64x8], first: usize) {
        for (digits, table) in digits.iter().zip(&table()[first..]) {
            for lane in 0..8 {
                let [x, y, z, ..] = state.0.map(|element| element.canonical(lane, &P));
                let (entry_x, entry_y, tag) = entry(table, digits.0[lane]);
                let zz = times(&z, &z);
                let h = minus(&times(&entry_x, &zz), &x);
                let r = minus(&times(&entry_y, &times(&z, &zz)), &y);
                let hh = times(&h, &h);
                let (hhh, v) = (times(&h, &hh), times(&x, &hh));
                let new_x = minus(&minus(&times(&r, &r), &hhh), &plus(&v, &v));
                let new_y = minus(&times(&r, &minus(&v, &new_x)), &times(&y, &hhh));
                state.0[0].put(lane, &new_x);
                state.0[1].put(lane, &new_y);
                state.0[2].put(lane, &times(&z, &h));
                let tags = &mut state.0[4].0[0].0[lane];
                *tags = tags.wrapping_add(tag);
            }
        }
    }

    fn wipe_registers(self) {}
}

impl PointKernels for Model {
    /// Textbook doubling, except for the sign.
    fn double(self, state: &mut PointState) {
        for lane in 0..8 {
            let [x, v, z] = [&state.x, &state.v, &state.z].map(|element| element.canonical(lane, &P));
            let (y, zz) = (half(&v), times(&z, &z));
            let slope = times(&minus(&x, &zz), &plus(&x, &zz));
            let slope = plus(&plus(&slope, &slope), &slope);
            let yy = times(&y, &y);
            let s = quadruple(&times(&x, &yy));
            let new_x = minus(&times(&slope, &slope), &plus(&s, &s));
            let eighth = quadruple(&times(&yy, &yy));
            let new_y = minus(&times(&slope, &minus(&s, &new_x)), &plus(&eighth, &eighth));
            state.put(lane, &new_x, &P.minus(&new_y), &times(&v, &z));
        }
    }

    fn add(self, state: &mut PointState) {
        for lane in 0..8 {
            let [x, v] = [&state.entry.x, &state.entry.v].map(|element| element.canonical(lane, &P));
            state.add_affine(lane, &x, &half(&v));
        }
    }

    fn windows_begin(self, state: &mut PointState, digits: &U64x8, table: &Table) {
        for lane in 0..8 {
            let (x, y) = own_entry(table, lane, digits.0[lane]);
            state.put(lane, &x, &y, &P.one);
        }
    }

    fn windows_add(self, state: &mut PointState, digits: &[U64x8], table: &Table) {
        for digits in digits {
            (0..multiple::WINDOW_BITS).for_each(|_| self.double(state));
            for lane in 0..8 {
                let (x, y) = own_entry(table, lane, digits.0[lane]);
                state.add_affine(lane, &x, &y);
            }
        }
    }
}

impl PointState {
    fn put(&mut self, lane: usize, x: &Number, y: &Number, z: &Number) {
        self.x.put(lane, x);
        self.v.put(lane, &plus(y, y));
        self.z.put(lane, z);
        self.zz.put(lane, &times(z, z));
    }

    fn add_affine(&mut self, lane: usize, entry_x: &Number, entry_y: &Number) {
        let [x, v, z] = [&self.x, &self.v, &self.z].map(|element| element.canonical(lane, &P));
        let (y, zz) = (half(&v), times(&z, &z));
        let h = minus(&times(entry_x, &zz), &x);
        let r = minus(&times(entry_y, &times(&z, &zz)), &y);
        let hh = times(&h, &h);
        let (hhh, v) = (times(&h, &hh), times(&x, &hh));
        let new_x = minus(&minus(&times(&r, &r), &hhh), &plus(&v, &v));
        let new_y = minus(&times(&r, &minus(&v, &new_x)), &times(&y, &hhh));
        let factor = plus(&h, &h);
        self.factor.put(lane, &factor);
        // Since z is doubled, x and y are four and eight times as large.
        let [new_x, new_y] = [quadruple(&new_x), quadruple(&plus(&new_y, &new_y))];
        self.put(lane, &new_x, &new_y, &times(&z, &factor));
    }
}

/// Returns the odd multiple for a digit, as x and y, by reading the whole table.
fn own_entry(table: &Table, lane: usize, digit: u64) -> (Number, Number) {
    let negative = (digit >> (multiple::WINDOW_BITS - 1)).wrapping_sub(1);
    let index = (digit ^ negative) & (table.len() as u64 - 1);
    let (mut x, mut v) = ([0; 4], [0; 4]);
    for (j, entry) in table.iter().enumerate() {
        let wanted = is_zero(&[j as u64 ^ index]);
        x = select(wanted, &entry.x.canonical(lane, &P), &x);
        v = select(wanted, &entry.v.canonical(lane, &P), &v);
    }
    let y = half(&v);
    (x, select(negative, &minus(&[0; 4], &y), &y))
}

fn quadruple(a: &Number) -> Number {
    let twice = plus(a, a);
    plus(&twice, &twice)
}

fn half(a: &Number) -> Number {
    // (p + 1) / 2, in Montgomery form
    times(a, &P.montgomery(&[0, 1 << 31, 1 << 63, 0x7fff_ffff_8000_0000]))
}

/// Returns the multiple for a digit, and its tag, by reading the whole table.
fn entry(table: &[u64; TABLE], digit: u64) -> (Number, Number, u64) {
    const ENTRIES: usize = 1 << (WINDOW_BITS - 1);
    let negative = (digit >> (WINDOW_BITS - 1)).wrapping_sub(1);
    let index = (digit ^ negative) & (ENTRIES as u64 - 1);
    let mut rows = [0; 11];
    for (row, entries) in rows.iter_mut().zip(table.chunks(ENTRIES)) {
        let wanted = |(j, entry): (usize, &u64)| entry & is_zero(&[j as u64 ^ index]);
        *row = entries.iter().enumerate().map(wanted).fold(0, |sum, entry| sum | entry);
    }
    let number = |digits: &[u64]| {
        let digits = std::array::from_fn(|i| U64x8([digits[i]; 8]));
        Element(digits).canonical(0, &P)
    };
    let (x, y, tag) = (number(&rows[..5]), number(&rows[5..10]), rows[10]);
    (x, select(negative, &P.minus(&y), &y), (tag ^ negative).wrapping_sub(negative))
}

/// Computes a b / 2^260, digit by digit.
fn multiply(a: &Element, b: &Element, modulus: &Modulus) -> Element {
    multiply_lanes(a, b, modulus, 8)
}

fn multiply_lanes(a: &Element, b: &Element, modulus: &Modulus, lanes: usize) -> Element {
    let prime = Element::broadcast(&modulus.words);
    let mut out = Element::default();
    for lane in 0..lanes {
        let [a, b, prime] = [a, b, &prime].map(|element| element.0.map(|vector| vector.0[lane] & DIGIT_MASK));
        let mut columns = [0u128; 10];
        let add = |columns: &mut [u128], x: u64, y: &[u64; 5]| {
            columns.iter_mut().zip(y).for_each(|(column, y)| *column += u128::from(x) * u128::from(*y));
        };
        (0..5).for_each(|i| add(&mut columns[i..], a[i], &b));
        for i in 0..5 {
            let m = (columns[i] as u64).wrapping_mul(modulus.inverse.wrapping_neg()) & DIGIT_MASK;
            add(&mut columns[i..], m, &prime);
            columns[i + 1] += columns[i] >> 52;
        }
        for k in 5..10 {
            out.0[k - 5].0[lane] = columns[k] as u64 & DIGIT_MASK;
            if k < 9 {
                columns[k + 1] += columns[k] >> 52;
            }
        }
    }
    out
}

fn times(a: &Number, b: &Number) -> Number {
    multiply_lanes(&Element::broadcast(a), &Element::broadcast(b), &P, 1).canonical(0, &P)
}

fn plus(a: &Number, b: &Number) -> Number {
    minus(a, &P.minus(b))
}

fn minus(a: &Number, b: &Number) -> Number {
    let (difference, borrow) = subtract(a, b);
    let mut carry = 0;
    let again = std::array::from_fn(|i| {
        let sum = u128::from(difference[i]) + u128::from(P.words[i]) + carry;
        carry = sum >> 64;
        sum as u64
    });
    select(borrow, &again, &difference)
}
