//! Table of P-256's fixed base: (2 j + 1) 2^(w i) G for windows i of w bits, computed when the crate is built.

use crate::asm::write_quads;
use crate::p256::{ENTRIES, WINDOW_BITS, WINDOWS};
use crate::x25519_stream::DIGITS;

/// Bits of a digit in the table.
const TABLE_BITS: usize = 52;
/// p = 2^256 - 2^224 + 2^192 + 2^96 - 1, the lowest word first.
const P: [u64; 4] = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];
/// Prime modulus of the tags, 2^56 - 5.
const TAG_MODULUS: u128 = (1 << 56) - 5;

/// Returns the text of the data at `quadrille_p256_table`: for each window, for each of the five digits of x and of y
/// in Montgomery form, and for the tag, which is the multiple modulo 2^56 - 5: the quadwords of all points.
pub(crate) fn text() -> String {
    let mut power = Point::base();
    let mut points = Vec::new();
    for _ in 0..WINDOWS {
        let twice = power.doubled();
        let mut multiple = power.clone();
        for _ in 0..ENTRIES {
            let next = multiple.plus(&twice);
            points.push(multiple);
            multiple = next;
        }
        power = (0..WINDOW_BITS).fold(power, |power, _| power.doubled());
    }

    let points = affine(&points);
    let mut text = format!(".globl {0}\n.hidden {0}\n.p2align 6\n{0}:\n", "quadrille_p256_table");
    let mut weight = 1;
    for window in points.chunks(ENTRIES) {
        for coordinate in [|(x, _): &(Element, Element)| x.digits(), |(_, y): &(Element, Element)| y.digits()]
        {
            let numbers: Vec<_> = window.iter().map(coordinate).collect();
            for digit in 0..DIGITS {
                write_quads(&mut text, numbers.iter().map(|digits| digits[digit]));
            }
        }
        write_quads(&mut text, (0..ENTRIES as u128).map(|j| ((2 * j + 1) * weight % TAG_MODULUS) as u64));
        weight = (weight << WINDOW_BITS) % TAG_MODULUS;
    }
    text
}

/// Point as x / z^2, y / z^3.
#[derive(Clone)]
struct Point {
    x: Element,
    y: Element,
    z: Element,
}

impl Point {
    fn base() -> Self {
        let x = Element::from_hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
        let y = Element::from_hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5");
        let b = Element::from_hex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");
        let x_cubed = x.times(&x).times(&x);
        let right = x_cubed.minus(&x).minus(&x).minus(&x).plus(&b);
        assert_eq!(y.times(&y).0, right.0, "the base point is on the curve");
        Self { x, y, z: Element::one() }
    }

    fn doubled(&self) -> Self {
        let Self { x, y, z } = self;
        let (yy, zz) = (y.times(y), z.times(z));
        let slope = x.minus(&zz).times(&x.plus(&zz));
        let slope = slope.plus(&slope).plus(&slope);
        let s = x.times(&yy);
        let s = s.plus(&s).plus(&s).plus(&s);
        let fourth = yy.times(&yy);
        let fourth = fourth.plus(&fourth).plus(&fourth).plus(&fourth);
        let new_x = slope.times(&slope).minus(&s).minus(&s);
        let new_y = slope.times(&s.minus(&new_x)).minus(&fourth).minus(&fourth);
        let yz = y.times(z);
        Self { x: new_x, y: new_y, z: yz.plus(&yz) }
    }

    /// Adds points that differ in more than their sign.
    fn plus(&self, other: &Self) -> Self {
        let (zz, other_zz) = (self.z.times(&self.z), other.z.times(&other.z));
        let (u, v) = (self.x.times(&other_zz), other.x.times(&zz));
        let s = self.y.times(&other_zz).times(&other.z);
        let (h, r) = (v.minus(&u), other.y.times(&zz).times(&self.z).minus(&s));
        let hh = h.times(&h);
        let (hhh, w) = (hh.times(&h), u.times(&hh));
        let x = r.times(&r).minus(&hhh).minus(&w).minus(&w);
        let y = r.times(&w.minus(&x)).minus(&s.times(&hhh));
        Self { x, y, z: self.z.times(&other.z).times(&h) }
    }
}

/// Returns the points' affine coordinates, by one inversion (Montgomery's trick).
fn affine(points: &[Point]) -> Vec<(Element, Element)> {
    let mut product = Element::one();
    let mut products = Vec::new();
    for point in points {
        products.push(product.clone());
        product = product.times(&point.z);
    }
    let mut inverse = product.inverse();
    let mut coordinates = Vec::new();
    for (point, product) in points.iter().zip(&products).rev() {
        let own = inverse.times(product);
        inverse = inverse.times(&point.z);
        let square = own.times(&own);
        coordinates.push((point.x.times(&square), point.y.times(&square).times(&own)));
    }
    coordinates.reverse();
    coordinates
}

/// Number below p, times 2^256, the lowest word first.
#[derive(Clone)]
struct Element([u64; 4]);

impl Element {
    fn one() -> Self {
        // 2^256 = 2^224 - 2^192 - 2^96 + 1
        Self([1, 0xffff_ffff_0000_0000, u64::MAX, 0xffff_fffe])
    }

    fn from_hex(text: &str) -> Self {
        let word = |i: usize| u64::from_str_radix(&text[48 - 16 * i..64 - 16 * i], 16).expect("hexadecimal");
        let mut number = Self(std::array::from_fn(word));
        for _ in 0..256 {
            number = number.plus(&number);
        }
        number
    }

    fn plus(&self, other: &Self) -> Self {
        let mut carry = 0;
        let sum = std::array::from_fn(|i| {
            let sum = u128::from(self.0[i]) + u128::from(other.0[i]) + carry;
            carry = sum >> 64;
            sum as u64
        });
        Self::reduced(sum, carry as u64)
    }

    fn minus(&self, other: &Self) -> Self {
        let (negated, _) = subtract(&P, &other.0);
        self.plus(&Self(negated))
    }

    /// Montgomery multiplication; -1 / p = 1 modulo 2^64.
    fn times(&self, other: &Self) -> Self {
        let mut t = [0u64; 6];
        for a in self.0 {
            add_multiple(&mut t, a, &other.0);
            let m = t[0];
            add_multiple(&mut t, m, &P);
            t.rotate_left(1);
        }
        Self::reduced([t[0], t[1], t[2], t[3]], t[4])
    }

    /// Computes self^(p - 2).
    fn inverse(&self) -> Self {
        let (exponent, _) = subtract(&P, &[2, 0, 0, 0]);
        (0..256).rev().fold(Self::one(), |result, bit| {
            let square = result.times(&result);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 { square.times(self) } else { square }
        })
    }

    /// Reduces a number below 2p with `above` as its fifth word.
    fn reduced(number: [u64; 4], above: u64) -> Self {
        let (less, borrow) = subtract(&number, &P);
        Self(if above == 0 && borrow { number } else { less })
    }

    /// Returns the number times 2^260, reduced below p.
    fn digits(&self) -> [u64; DIGITS] {
        let words = (0..4).fold(self.clone(), |number, _| number.plus(&number)).0;
        let bit = |i: usize| if i < 256 { words[i / 64] >> (i % 64) & 1 } else { 0 };
        std::array::from_fn(|i| (0..TABLE_BITS).map(|b| bit(TABLE_BITS * i + b) << b).sum())
    }
}

fn add_multiple(sum: &mut [u64; 6], factor: u64, number: &[u64; 4]) {
    let mut carry = 0;
    for (i, word) in sum.iter_mut().enumerate() {
        let digit = number.get(i).copied().unwrap_or(0);
        let new = u128::from(*word) + u128::from(factor) * u128::from(digit) + carry;
        (*word, carry) = (new as u64, new >> 64);
    }
}

/// Returns a - b, and whether b was larger.
fn subtract(a: &[u64; 4], b: &[u64; 4]) -> ([u64; 4], bool) {
    let mut borrow = false;
    let difference = std::array::from_fn(|i| {
        let (word, first) = a[i].overflowing_sub(b[i]);
        let (word, second) = word.overflowing_sub(u64::from(borrow));
        borrow = first || second;
        word
    });
    (difference, borrow)
}
