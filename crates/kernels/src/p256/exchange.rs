//! Key exchange on eight lanes, for any implementation of the lanes.

use super::agreement::{P256_POINT_BYTES, P256Agreement, UNCOMPRESSED};
use super::batch::{LANES, TOGETHER, on_curve};
use super::comb::{self, CombState, Kernels, odd, put_digits};
use super::element::{Element, U64x8};
use super::inverse::invert_all;
use super::modulus::{Number, P, is_zero, parsed_scalar, select, to_bytes};
use super::multiple::{PointKernels, Points, Tables, multiply};
use super::{P256_BYTES, scalar};
use crate::secrecy::declassify;
use zeroize::{Zeroize, Zeroizing};

const ONE: Number = [1, 0, 0, 0];
/// Base point: x and y. Used in lanes without an operation.
const BASE: [Number; 2] = [
    [0xf4a1_3945_d898_c296, 0x7703_7d81_2deb_33a0, 0xf8bc_e6e5_63a4_40f2, 0x6b17_d1f2_e12c_4247],
    [0xcbb6_4068_37bf_51f5, 0x2bce_3357_6b31_5ece, 0x8ee7_eb4a_7c0f_9e16, 0x4fe3_42e2_fe1a_7f9b],
];

/// Computes the secrets of operations with valid scalars and points.
pub(crate) fn agree(kernels: impl PointKernels, batch: &mut [P256Agreement<'_>]) {
    for batch in batch.chunks_mut(TOGETHER) {
        let mut rings: Vec<Ring> = batch.chunks(LANES).map(|ops| Ring::new(kernels, ops)).collect();
        let multiply = |a: &Element, b: &Element| kernels.multiply(a, b);
        invert_all(rings.iter_mut().map(|ring| &mut ring.tables.z).collect(), &P, multiply);
        let mut products: Zeroizing<Vec<Product>> = Zeroizing::new(Vec::with_capacity(rings.len()));
        // In place: moving out of a vector would leave a copy there.
        rings.iter_mut().for_each(|ring| products.push(ring.multiply(kernels)));
        invert_all(products.iter_mut().map(|product| &mut product.z).collect(), &P, multiply);
        for (ops, product) in batch.chunks_mut(LANES).zip(products.iter()) {
            product.finish(kernels, ops);
        }
    }
    kernels.wipe_registers();
}

/// Eight secrets in progress.
struct Ring {
    /// Whether each lane computes its operation's secret; invalid lanes compute with other inputs.
    valid: [bool; LANES],
    /// Scalars, odd, and equivalent to the operations'.
    scalars: Zeroizing<[Number; LANES]>,
    tables: Tables,
}

impl Ring {
    fn new(kernels: impl PointKernels, ops: &[P256Agreement<'_>]) -> Self {
        let mut scalars = Zeroizing::new([ONE; LANES]);
        let mut coordinates = [BASE; LANES];
        let mut valid = [false; LANES];
        for (lane, op) in ops.iter().enumerate() {
            if let Some((scalar, point)) = parsed_scalar(op.scalar).zip(op.coordinates()) {
                (scalars[lane], coordinates[lane], valid[lane]) = (odd(&scalar), point, true);
            }
        }
        let points = points(kernels, &mut coordinates, &mut valid);
        Self { valid, scalars, tables: Tables::new(kernels, &points) }
    }

    /// Computes the products, with 1 / z in the tables.
    fn multiply(&mut self, kernels: impl PointKernels) -> Product {
        let table = self.tables.finish(kernels);
        let state = multiply(kernels, table, &self.scalars);
        let zero: [u64; LANES] = std::array::from_fn(|lane| is_zero(&state.z.canonical(lane, &P)));
        let mut product = Product { valid: self.valid, missed: zero, x: state.x, z: state.z };
        product.z.replace(&zero, &P.one);
        product
    }
}

/// Loads points in Montgomery form. A point that is not on the curve is invalid, and replaced by the base point.
fn points(
    kernels: impl PointKernels,
    coordinates: &mut [[Number; 2]; LANES],
    valid: &mut [bool; LANES],
) -> Points {
    let montgomery = |numbers: &[Number; LANES]| {
        kernels.multiply(&Element::of(numbers), &Element::broadcast(&P.r_squared))
    };
    let both = |coordinates: &[[Number; 2]; LANES]| [0, 1].map(|i| coordinates.map(|point| point[i]));
    let [x, y] = both(coordinates).map(|numbers| montgomery(&numbers));
    for (lane, on_curve) in on_curve(kernels, &x, &y).into_iter().enumerate() {
        if on_curve == 0 {
            (coordinates[lane], valid[lane]) = (BASE, false);
        }
    }
    let [x, y] = both(coordinates);
    let minus_y = y.map(|y| P.minus(&y));
    Points { x: montgomery(&x), y: montgomery(&y), minus_y: montgomery(&minus_y) }
}

/// Multiples of the points.
struct Product {
    valid: [bool; LANES],
    /// All ones in lanes that failed.
    missed: [u64; LANES],
    /// Coordinate x times z^2.
    x: Element,
    /// Coordinate z; 1 / z after the inversion.
    z: Element,
}

impl Product {
    fn finish(&self, kernels: impl Kernels, ops: &mut [P256Agreement<'_>]) {
        let x = Zeroizing::new(divided(kernels, &self.x, &self.z));
        for (lane, op) in ops.iter_mut().enumerate() {
            // A scalar that fails is one of two.
            if declassify(self.missed[lane]) != 0 {
                scalar::agree(op);
            } else if self.valid[lane] {
                to_bytes(&x[lane], op.secret);
                op.computed = true;
            }
        }
    }
}

/// Computes x / z^2 from x and 1 / z, converted from Montgomery form.
fn divided(kernels: impl Kernels, x: &Element, inverse: &Element) -> [Number; LANES] {
    let square = Zeroizing::new(kernels.multiply(inverse, inverse));
    let x = Zeroizing::new(kernels.multiply(x, &square));
    let x = Zeroizing::new(kernels.multiply(&x, &Element::broadcast(&ONE)));
    x.all_canonical(&P)
}

/// Computes the public keys; the slices have the same length.
pub(crate) fn public_keys(
    kernels: impl Kernels,
    scalars: &[[u8; P256_BYTES]],
    public_keys: &mut [[u8; P256_POINT_BYTES]],
) {
    for (scalars, keys) in scalars.chunks(TOGETHER).zip(public_keys.chunks_mut(TOGETHER)) {
        let mut multiples: Zeroizing<Vec<BaseMultiple>> =
            Zeroizing::new(Vec::with_capacity(scalars.len().div_ceil(LANES)));
        scalars.chunks(LANES).for_each(|scalars| multiples.push(BaseMultiple::new(kernels, scalars)));
        let z = multiples.iter_mut().map(|multiple| &mut multiple.z).collect();
        invert_all(z, &P, |a, b| kernels.multiply(a, b));
        let each = multiples.iter().zip(scalars.chunks(LANES)).zip(keys.chunks_mut(LANES));
        each.for_each(|((multiple, scalars), keys)| multiple.finish(kernels, scalars, keys));
    }
    kernels.wipe_registers();
}

/// Eight multiples of the base point in progress.
#[derive(Default)]
struct BaseMultiple {
    /// Coordinates x z^2, y z^3, and z, which is 1 / z after the inversion.
    x: Element,
    y: Element,
    z: Element,
    /// All ones in lanes that failed.
    missed: [u64; LANES],
}

impl BaseMultiple {
    fn new(kernels: impl Kernels, scalars: &[[u8; P256_BYTES]]) -> Self {
        let mut digits = Zeroizing::new([U64x8::default(); comb::WINDOWS]);
        for lane in 0..LANES {
            let scalar = scalars.get(lane).and_then(parsed_scalar);
            let odd = Zeroizing::new(scalar.map_or(ONE, |scalar| odd(&scalar)));
            put_digits::<{ comb::WINDOW_BITS }>(&mut *digits, lane, &odd);
        }
        let mut state = Zeroizing::new(CombState::default());
        kernels.comb_begin(&mut state, &digits[0]);
        kernels.comb_add(&mut state, &digits[1..], 1);
        let [x, y, mut z, ..] = state.0;
        let missed = std::array::from_fn(|lane| is_zero(&z.canonical(lane, &P)));
        z.replace(&missed, &P.one);
        Self { x, y, z, missed }
    }

    fn finish(
        &self,
        kernels: impl Kernels,
        scalars: &[[u8; P256_BYTES]],
        keys: &mut [[u8; P256_POINT_BYTES]],
    ) {
        let x = divided(kernels, &self.x, &self.z);
        let y = divided(kernels, &kernels.multiply(&self.y, &self.z), &self.z);
        for (lane, (scalar, key)) in scalars.iter().zip(keys).enumerate() {
            let Some(number) = parsed_scalar(scalar) else {
                *key = [0; P256_POINT_BYTES];
                continue;
            };
            // A scalar that fails is one of a few.
            if declassify(self.missed[lane]) != 0 {
                scalar::public_key(scalar, key);
                continue;
            }
            let was_odd = (number[0] & 1).wrapping_neg();
            key[0] = UNCOMPRESSED;
            to_bytes(&x[lane], &mut key[1..=P256_BYTES]);
            to_bytes(&select(was_odd, &y[lane], &P.minus(&y[lane])), &mut key[1 + P256_BYTES..]);
        }
    }
}

impl Zeroize for Product {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.z.zeroize();
    }
}

impl Zeroize for BaseMultiple {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}
