//! Signatures on eight lanes, for any implementation of the lanes.

use super::comb::{CombState, Kernels, WINDOW_BITS, WINDOWS, odd, put_digits, tags_agree};
use super::element::{Element, U64x8};
use super::inverse::invert_all;
use super::modulus::{N, Number, P, from_bytes, is_zero, subtract, to_bytes};
use super::nonce::{self, WIDE};
use super::{P256_BYTES, P256Signature};
use crate::secrecy::declassify;
use zeroize::{Zeroize, Zeroizing};

pub(crate) const LANES: usize = 8;
/// Number of operations with denominators that are inverted together.
pub(super) const TOGETHER: usize = 8 * LANES;

const ONE: Number = [1, 0, 0, 0];
/// R^2 2^256 mod n, R being 2^260.
const N_R_SQUARED_HIGH: Number =
    [0x64af_6c1c_86aa_7ab0, 0x16fa_57c7_cdf4_4020, 0x43b9_246b_a5e9_3f26, 0x3a54_e7b4_07be_64d5];
/// Constants of the curve, times R: b, and p - 3.
const B: Number =
    [0x89cd_f622_9c4b_ddfd, 0xcf00_5cca_8843_090d, 0x5a22_0abf_7212_ed6a, 0xc300_61dd_4874_8341];
const MINUS_THREE: Number = [0xffff_ffff_ffff_ffcf, 0x30_ffff_ffff, 0, 0xffff_ffcf_0000_0031];

/// Computes the signatures; those that fail their checks, or without random numbers, stay unsigned.
pub(crate) fn sign(kernels: impl Kernels, batch: &mut [P256Signature<'_>]) {
    for batch in batch.chunks_mut(TOGETHER) {
        if let Some(hashes) = nonce::draw(batch) {
            sign_with(kernels, batch, &hashes);
        }
    }
    kernels.wipe_registers();
}

/// Signs with the nonces derived from the hashes.
pub(super) fn sign_with(kernels: impl Kernels, batch: &mut [P256Signature<'_>], hashes: &[[u8; WIDE]]) {
    let mut rings: Zeroizing<Vec<Ring>> = Zeroizing::new(Vec::with_capacity(batch.len().div_ceil(LANES)));
    hashes.chunks(LANES).for_each(|hashes| rings.push(Ring::new(kernels, hashes)));
    let z: Vec<&mut Element> = rings.iter_mut().map(|ring| &mut ring.point[2]).collect();
    invert_all(z, &P, |a, b| kernels.multiply(a, b));
    let k: Vec<&mut Element> = rings.iter_mut().map(|ring| &mut ring.k_inverse).collect();
    invert_all(k, &N, |a, b| kernels.multiply_modulo_n(a, b));
    for (ops, ring) in batch.chunks_mut(LANES).zip(rings.iter()) {
        ring.finish(kernels, ops);
    }
}

/// Eight signatures in progress.
#[derive(Default)]
struct Ring {
    /// Nonces.
    k: [Number; LANES],
    /// Inverses of the nonces in Montgomery form; the nonces until then.
    k_inverse: Element,
    /// Multiples of the base point as x / z^2, y / z^3; after the inversion the third is 1 / z. In Montgomery form.
    point: [Element; 3],
    /// Sum of the tags of the added entries.
    tags: [u64; LANES],
}

impl Ring {
    fn new(kernels: impl Kernels, hashes: &[[u8; WIDE]]) -> Self {
        let mut ring = Self::default();
        ring.reduce(kernels, hashes);
        ring.multiply_base(kernels);
        ring
    }

    /// Reduces the hashes modulo n to nonces; those of lanes without a signature are 1.
    fn reduce(&mut self, kernels: impl Kernels, hashes: &[[u8; WIDE]]) {
        let mut halves = Zeroizing::new([Element::default(), Element::broadcast(&ONE)]);
        for (lane, hash) in hashes.iter().enumerate() {
            let (high, low) = hash.split_at(WIDE / 2);
            for (half, bytes) in halves.iter_mut().zip([high, low]) {
                let mut number = Zeroizing::new([0; P256_BYTES]);
                number.copy_from_slice(bytes);
                half.put(lane, &from_bytes(&number));
            }
        }
        let multiply = |a: &Element, b: &Number| kernels.multiply_modulo_n(a, &Element::broadcast(b));
        let high = Zeroizing::new(multiply(&halves[0], &N_R_SQUARED_HIGH));
        let low = Zeroizing::new(multiply(&halves[1], &N.r_squared));
        self.k_inverse = high.plus(&low);
        let k = Zeroizing::new(multiply(&self.k_inverse, &ONE));
        self.k = k.all_canonical(&N);
    }

    fn multiply_base(&mut self, kernels: impl Kernels) {
        let mut digits = Zeroizing::new([U64x8::default(); WINDOWS]);
        self.k
            .iter()
            .enumerate()
            .for_each(|(lane, k)| put_digits::<WINDOW_BITS>(&mut *digits, lane, &odd(k)));
        let mut state = Zeroizing::new(CombState::default());
        kernels.comb_begin(&mut state, &digits[0]);
        kernels.comb_add(&mut state, &digits[1..], 1);
        self.point.copy_from_slice(&state.0[..3]);
        self.tags = std::array::from_fn(|lane| state.tags(lane));
    }

    /// Signs with nonces and points, and releases signatures that pass the checks.
    fn finish(&self, kernels: impl Kernels, ops: &mut [P256Signature<'_>]) {
        let multiply = |a: &Element, b: &Element| kernels.multiply_modulo_n(a, b);
        let inputs = Inputs::of(ops);
        let point = Affine::of(kernels, &self.point);
        // Below 2n: x is below p.
        let r: [Number; LANES] = std::array::from_fn(|lane| N.reduced(&point.x[lane], 0));
        let r_lanes = Element::of(&r);
        // This sum, or its second part, would reveal d.
        let product = Zeroizing::new(multiply(&r_lanes, &inputs.d_montgomery));
        let sum = Zeroizing::new(inputs.z.plus(&product));
        let s = multiply(&self.k_inverse, &sum).all_canonical(&N);

        // The checks: s k = z + r d, computed differently from above; the point is on the curve, and its entries sum
        // to k.
        let k = Zeroizing::new(Element::of(&self.k));
        let left = Zeroizing::new(multiply(&Element::of(&s), &k).all_canonical(&N));
        let product = Zeroizing::new(multiply(&r_lanes, &inputs.d));
        let right = Zeroizing::new(multiply(&inputs.z, &Element::broadcast(&ONE)).plus(&product));
        for (lane, op) in ops.iter_mut().enumerate() {
            let sound = equal(&left[lane], &right.canonical(lane, &N))
                & point.on_curve[lane]
                & tags_agree(self.tags[lane], &odd(&self.k[lane]))
                & !is_zero(&r[lane])
                & !is_zero(&s[lane]);
            op.signed = declassify(sound) == u64::MAX;
            if op.signed {
                to_bytes(&r[lane], &mut op.signature[..P256_BYTES]);
                to_bytes(&s[lane], &mut op.signature[P256_BYTES..]);
            }
        }
    }
}

/// Inputs of the signatures: d once as it is and once in Montgomery form.
#[derive(Default)]
struct Inputs {
    z: Element,
    d: Element,
    d_montgomery: Element,
}

impl Inputs {
    fn of(ops: &[P256Signature<'_>]) -> Zeroizing<Self> {
        let mut inputs = Zeroizing::new(Self::default());
        for (lane, op) in ops.iter().enumerate() {
            inputs.z.put(lane, &from_bytes(&op.digest_bytes()));
            inputs.d.put(lane, &op.key.d);
            inputs.d_montgomery.put(lane, &op.key.montgomery);
        }
        inputs
    }
}

/// Point's x-coordinate, below p, and all ones if the point is on the curve.
struct Affine {
    x: [Number; LANES],
    on_curve: [u64; LANES],
}

impl Affine {
    fn of(kernels: impl Kernels, [x, y, inverse]: &[Element; 3]) -> Self {
        let multiply = |a: &Element, b: &Element| kernels.multiply(a, b);
        let square = Zeroizing::new(multiply(inverse, inverse));
        let y = multiply(&multiply(y, &square), inverse);
        let x = multiply(&multiply(x, &square), &Element::broadcast(&ONE)).all_canonical(&P);
        // The checked number is the one used in the signature.
        let again = multiply(&Element::of(&x), &Element::broadcast(&P.r_squared));
        Self { x, on_curve: on_curve(kernels, &again, &y) }
    }
}

/// Returns all ones in the lanes with a point that satisfies y^2 = (x^2 - 3) x + b, in Montgomery form.
pub(super) fn on_curve(kernels: impl Kernels, x: &Element, y: &Element) -> [u64; LANES] {
    let factor = kernels.multiply(x, x).plus(&Element::broadcast(&MINUS_THREE));
    let right = kernels.multiply(x, &factor).plus(&Element::broadcast(&B));
    let left = kernels.multiply(y, y);
    std::array::from_fn(|lane| equal(&left.canonical(lane, &P), &right.canonical(lane, &P)))
}

fn equal(a: &Number, b: &Number) -> u64 {
    is_zero(&subtract(a, b).0)
}

impl Zeroize for Ring {
    fn zeroize(&mut self) {
        self.k.zeroize();
        self.k_inverse.zeroize();
        self.point.zeroize();
        self.tags.zeroize();
    }
}

impl Zeroize for Inputs {
    fn zeroize(&mut self) {
        self.d.zeroize();
        self.d_montgomery.zeroize();
    }
}
