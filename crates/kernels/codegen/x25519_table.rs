//! Table of X25519's fixed base: j 32^i B for windows i and j from 1 to 16, B being the base point of edwards25519
//! (RFC 8032, section 5.1), computed when the crate is built.

use crate::asm::{write_longs, write_quads};
use crate::x25519::WINDOWS;

/// Number of points of one window.
const ENTRIES: usize = 16;
/// Bits of a digit in this module.
const BITS: usize = 51;
const MASK: u64 = (1 << BITS) - 1;

/// End positions of the digits of eight lanes, in bits: five of 52.
const EIGHT_LANES: [usize; 5] = [52, 104, 156, 208, 256];
/// End positions of the digits of four lanes: alternately of 26 and 25 bits.
const FOUR_LANES: [usize; 10] = [26, 51, 77, 102, 128, 153, 179, 204, 230, 256];

/// Points, independent of the output format.
pub(crate) struct Table {
    /// 32^51 B
    start: [Element; 4],
    /// Points of each window, sixteen of them: y + x, y - x and 2dxy.
    windows: Vec<Vec<[Element; 3]>>,
}

impl Table {
    pub(crate) fn new() -> Self {
        let d = Element::from_hex("52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3");
        let twice_d = d.plus(&d);
        let mut power = Point::base(&d);
        let mut windows = Vec::new();
        for _ in 0..WINDOWS {
            let mut multiples = vec![power.clone()];
            for _ in 1..ENTRIES {
                multiples.push(multiples[multiples.len() - 1].plus(&power, &twice_d));
            }
            power = multiples[ENTRIES - 1].plus(&multiples[ENTRIES - 1], &twice_d);
            let entry = |(x, y): (Element, Element)| [y.plus(&x), y.minus(&x), x.times(&y).times(&twice_d)];
            windows.push(multiples.iter().map(|point| entry(point.affine())).collect());
        }
        let (x, y) = power.affine();
        let product = x.times(&y);
        Self { start: [x, y, Element::one(), product], windows }
    }

    /// Returns the text for eight lanes: `quadrille_x25519_start` is 32^51 B as x, y, z, t, each five quadwords; at
    /// `quadrille_x25519_table`, for each window, for each of y + x, y - x and 2dxy, for each of the five digits: the
    /// quadwords of the sixteen points.
    pub(crate) fn for_eight_lanes(&self) -> String {
        self.text("quadrille_x25519", &EIGHT_LANES, write_quads)
    }

    /// Returns the text for four lanes: `quadrille_x25519_avx2_start` and `quadrille_x25519_avx2_table` in the same
    /// order, in ten digits, which are doublewords in the table.
    pub(crate) fn for_four_lanes(&self) -> String {
        self.text("quadrille_x25519_avx2", &FOUR_LANES, write_longs)
    }

    fn text(&self, prefix: &str, ends: &[usize], write: fn(&mut String, Vec<u64>)) -> String {
        let mut text = format!(".p2align 6\n{prefix}_start:\n");
        self.start.iter().for_each(|coordinate| write_quads(&mut text, coordinate.digits(ends)));
        text.push_str(&format!(".p2align 6\n{prefix}_table:\n"));
        for window in &self.windows {
            for coordinate in 0..3 {
                let points: Vec<_> = window.iter().map(|point| point[coordinate].digits(ends)).collect();
                for digit in 0..ends.len() {
                    write(&mut text, points.iter().map(|digits| digits[digit]).collect());
                }
            }
        }
        text
    }
}

/// Point in extended twisted Edwards coordinates: x z, y z, z, x y z.
#[derive(Clone)]
struct Point {
    x: Element,
    y: Element,
    z: Element,
    t: Element,
}

impl Point {
    fn base(d: &Element) -> Self {
        let x = Element::from_hex("216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a");
        let y = Element::from_hex("6666666666666666666666666666666666666666666666666666666666666658");
        let (xx, yy) = (x.times(&x), y.times(&y));
        let right = Element::one().plus(&d.times(&xx).times(&yy));
        assert_eq!(
            yy.minus(&xx).digits(&EIGHT_LANES),
            right.digits(&EIGHT_LANES),
            "the base point is on the curve"
        );
        Self { t: x.times(&y), x, y, z: Element::one() }
    }

    /// Complete addition, so it doubles too (Hisil, Wong, Carter and Dawson, 2008, section 3.1).
    fn plus(&self, other: &Self, twice_d: &Element) -> Self {
        let a = self.y.minus(&self.x).times(&other.y.minus(&other.x));
        let b = self.y.plus(&self.x).times(&other.y.plus(&other.x));
        let c = self.t.times(twice_d).times(&other.t);
        let d = self.z.times(&other.z);
        let d = d.plus(&d);
        let (e, f, g, h) = (b.minus(&a), d.minus(&c), d.plus(&c), b.plus(&a));
        Self { x: e.times(&f), y: g.times(&h), z: f.times(&g), t: e.times(&h) }
    }

    fn affine(&self) -> (Element, Element) {
        let inverse = self.z.inverse();
        (self.x.times(&inverse), self.y.times(&inverse))
    }
}

/// Number modulo 2^255 - 19: digits of slightly more than 51 bits.
#[derive(Clone)]
struct Element([u64; 5]);

impl Element {
    fn one() -> Self {
        Self([1, 0, 0, 0, 0])
    }

    fn from_hex(text: &str) -> Self {
        let bit = |i: usize| {
            let digit = text.len() - 1 - i / 4;
            let value = u64::from_str_radix(&text[digit..=digit], 16).expect("hexadecimal");
            value >> (i % 4) & 1
        };
        Self(std::array::from_fn(|i| (0..BITS).map(|b| bit(BITS * i + b) << b).sum()))
    }

    fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i])).carried()
    }

    fn minus(&self, other: &Self) -> Self {
        // 4p keeps every digit positive.
        let offset = |i: usize| if i == 0 { 4 * (MASK - 18) } else { 4 * MASK };
        Self(std::array::from_fn(|i| self.0[i] + offset(i) - other.0[i])).carried()
    }

    fn times(&self, other: &Self) -> Self {
        let mut columns = [0u128; 5];
        for (i, a) in self.0.iter().enumerate() {
            for (j, b) in other.0.iter().enumerate() {
                let factor = if i + j < 5 { 1 } else { 19 };
                columns[(i + j) % 5] += u128::from(*a) * u128::from(*b) * factor;
            }
        }
        let mut carry = 0;
        let mut digits = columns.map(|column| {
            let sum = column + carry;
            carry = sum >> BITS;
            sum as u64 & MASK
        });
        digits[0] += 19 * carry as u64;
        Self(digits).carried()
    }

    /// Computes self^(p - 2).
    fn inverse(&self) -> Self {
        let mut result = Self::one();
        for bit in (0..255).rev() {
            result = result.times(&result);
            // p - 2 = 2^255 - 21
            if bit > 4 || 0b01011 >> bit & 1 == 1 {
                result = result.times(self);
            }
        }
        result
    }

    fn carried(mut self) -> Self {
        for i in 0..5 {
            let carry = self.0[i] >> BITS;
            self.0[i] &= MASK;
            self.0[(i + 1) % 5] += if i == 4 { 19 * carry } else { carry };
        }
        self
    }

    /// Returns the number, reduced below p, in digits with these end positions.
    fn digits(&self, ends: &[usize]) -> Vec<u64> {
        let mut number = self.clone().carried().carried();
        // Adding 19 carries out of bit 254 exactly if the number is p or more.
        let mut above = number.clone();
        above.0[0] += 19;
        let mut carry = 0;
        for digit in &mut above.0 {
            *digit += carry;
            carry = *digit >> BITS;
            *digit &= MASK;
        }
        if carry == 1 {
            number = above;
        }
        let bit = |i: usize| if i < 255 { number.0[i / BITS] >> (i % BITS) & 1 } else { 0 };
        let starts = std::iter::once(&0).chain(ends);
        starts.zip(ends).map(|(&start, &end)| (start..end).map(|i| bit(i) << (i - start)).sum()).collect()
    }
}
