//! Batches on eight lanes or four, for any implementation of the lanes.

use super::element::{Element, Layout, Vectors};
use super::{Agreement, X25519_BYTES};
use crate::secrecy::declassify;
use zeroize::{Zeroize, Zeroizing};

/// Smallest batch for lanes. Fewer are computed faster by BoringSSL, one at a time; see
/// `docs/kernels/measurements.md`.
pub(crate) const LEAST_AGREEMENTS: usize = 2;
pub(crate) const LEAST_PUBLIC_KEYS: usize = 2;
/// Number of vectors of lanes with denominators that are inverted together.
const TOGETHER: usize = 8;
/// Number of digits of a scalar in the comb: windows of five bits.
const WINDOWS: usize = 51;
const WINDOW_BITS: usize = 5;

/// Digits of a vector's scalars, lowest first, each from -16 to 15 in two's complement.
pub(crate) type Digits = Vectors<WINDOWS>;

/// Differences between adjacent bits of a vector's scalars, highest word first.
pub(crate) type Differences = Vectors<4>;

/// Arithmetic supplied by an instruction set; `codegen/x25519.rs` describes the functions.
pub(crate) trait Kernels: Copy {
    /// Layout of its numbers.
    type Layout: Layout;
    /// Number of bits of the second of two ladders that are omitted, from bit 255 on.
    const AHEAD: usize;

    /// Computes a * b, in clean digits.
    fn multiply(self, a: &Element<Self::Layout>, b: &Element<Self::Layout>) -> Element<Self::Layout>;
    /// Computes x^(2^count), in clean digits; count is at least 1.
    fn square(self, x: &Element<Self::Layout>, count: usize) -> Element<Self::Layout>;
    /// Computes x2 : z2, the product of scalar and point, from x1, in clean digits. Initially x2, z2, x3, z3 are 1,
    /// 0, x1, 1.
    fn ladder(self, state: &mut LadderState<Self::Layout>, differences: &Differences);
    /// Computes two ladders; the second one's differences begin [`AHEAD`](Self::AHEAD) bits later.
    fn ladders(self, states: &mut [LadderState<Self::Layout>; 2], differences: &[Differences; 2]);
    /// Sets x = z + y and t = z - y of the scalars' multiples of the base point, in digits for multiplications only.
    fn comb(self, state: &mut CombState<Self::Layout>, digits: &Digits);
    /// Clears the registers.
    fn wipe_registers();
}

/// State of the ladder: x1, x2, z2, x3, z3, and temporaries.
#[repr(C, align(64))]
pub(crate) struct LadderState<L: Layout>(pub(crate) [Element<L>; 20]);

/// State of the comb: x, y, z, t, and temporaries.
#[repr(C, align(64))]
pub(crate) struct CombState<L: Layout>(pub(crate) [Element<L>; 16]);

/// Fraction in each lane.
#[derive(Clone)]
struct Ratio<L: Layout> {
    numerator: Element<L>,
    denominator: Element<L>,
}

impl<L: Layout> Default for Ratio<L> {
    fn default() -> Self {
        Self { numerator: Element::default(), denominator: Element::default() }
    }
}

impl<L: Layout> Zeroize for Ratio<L> {
    fn zeroize(&mut self) {
        self.numerator.zeroize();
        self.denominator.zeroize();
    }
}

/// Computes the secrets.
pub(crate) fn agree<K: Kernels>(kernels: K, batch: &mut [Agreement<'_>]) {
    let lanes = K::Layout::LANES;
    for batch in batch.chunks_mut(TOGETHER * lanes) {
        let mut ratios = Zeroizing::new(vec![Ratio::default(); batch.len().div_ceil(lanes)]);
        let each = ratios.chunks_mut(2).zip(batch.chunks(2 * lanes));
        each.for_each(|(ratios, ops)| multiply_points(kernels, ops, ratios));
        divide(kernels, &mut ratios);
        for (ops, ratio) in batch.chunks_mut(lanes).zip(ratios.iter()) {
            for (lane, op) in ops.iter_mut().enumerate() {
                let words = Zeroizing::new(ratio.numerator.canonical(lane));
                write_words(&words, op.secret);
                op.all_zero = declassify(words.iter().fold(0, |bits, word| bits | word) == 0);
            }
        }
    }
    wipe_registers(kernels);
}

/// Computes the public keys; the slices have the same length.
pub(crate) fn public_keys<K: Kernels>(
    kernels: K,
    scalars: &[[u8; X25519_BYTES]],
    public_keys: &mut [[u8; X25519_BYTES]],
) {
    let (lanes, together) = (K::Layout::LANES, TOGETHER * K::Layout::LANES);
    for (scalars, public_keys) in scalars.chunks(together).zip(public_keys.chunks_mut(together)) {
        let mut ratios = Zeroizing::new(vec![Ratio::default(); scalars.len().div_ceil(lanes)]);
        let each = ratios.iter_mut().zip(scalars.chunks(lanes));
        each.for_each(|(ratio, scalars)| multiply_base(kernels, scalars, ratio));
        divide(kernels, &mut ratios);
        for (keys, ratio) in public_keys.chunks_mut(lanes).zip(ratios.iter()) {
            keys.iter_mut().enumerate().for_each(|(i, key)| write_words(&ratio.numerator.canonical(i), key));
        }
    }
    wipe_registers(kernels);
}

fn wipe_registers<K: Kernels>(_: K) {
    K::wipe_registers();
}

/// Computes the points' multiples as x : z, in one or two vectors of lanes, one per ratio. Lanes without an operation
/// compute with zeros.
fn multiply_points<K: Kernels>(kernels: K, ops: &[Agreement<'_>], ratios: &mut [Ratio<K::Layout>]) {
    let mut states = Zeroizing::new([LadderState::default(), LadderState::default()]);
    let mut differences = Zeroizing::new([Differences::default(); 2]);
    for (i, ops) in ops.chunks(K::Layout::LANES).enumerate() {
        let [x1, x2, _, x3, z3, ..] = &mut states[i].0;
        for (lane, op) in ops.iter().enumerate() {
            let mut point = read_words(op.point);
            point[3] &= u64::MAX >> 1;
            x1.put(lane, &point);
            put_differences::<K::Layout>(&mut differences[i], lane, &clamped(op.scalar), i * K::AHEAD);
        }
        (*x2, *x3, *z3) = (Element::small(1), *x1, Element::small(1));
    }
    match ratios {
        [_] => kernels.ladder(&mut states[0], &differences[0]),
        _ => kernels.ladders(&mut states, &differences),
    }
    for (ratio, state) in ratios.iter_mut().zip(states.iter()) {
        (ratio.numerator, ratio.denominator) = (state.0[1], state.0[2]);
    }
}

/// Stores the differences without the top `ahead` bits, which do not differ in a clamped scalar.
fn put_differences<L: Layout>(differences: &mut Differences, lane: usize, scalar: &[u64; 4], ahead: usize) {
    let [a, b, c, d] = *scalar;
    let words = [d ^ d >> 1, c ^ (c >> 1 | d << 63), b ^ (b >> 1 | c << 63), a ^ (a >> 1 | b << 63), 0];
    for i in 0..4 {
        differences.put::<L>(i, lane, words[i] << ahead | words[i + 1] >> 1 >> (63 - ahead));
    }
}

/// Computes the scalars' multiples of the base point as u = (z + y) : (z - y).
fn multiply_base<K: Kernels>(kernels: K, scalars: &[[u8; X25519_BYTES]], ratio: &mut Ratio<K::Layout>) {
    let mut state = Zeroizing::new(CombState::default());
    let mut digits = Zeroizing::new(Digits::default());
    for (lane, scalar) in scalars.iter().enumerate() {
        put_digits::<K::Layout>(&mut digits, lane, &clamped(scalar));
    }
    kernels.comb(&mut state, &digits);
    // The multiplication by one makes the denominator clean.
    ratio.numerator = state.0[0];
    ratio.denominator = kernels.multiply(&state.0[3], &Element::small(1));
}

/// Recodes scalar = 2^255 + the sum of digit_i 2^(5 i): bit 254 of a clamped scalar carries out of the highest
/// window.
fn put_digits<L: Layout>(digits: &mut Digits, lane: usize, scalar: &[u64; 4]) {
    let mut carry = 0;
    for i in 0..WINDOWS {
        let (word, shift) = (WINDOW_BITS * i / 64, WINDOW_BITS * i % 64);
        let above = if shift > 64 - WINDOW_BITS { scalar[word + 1] << (64 - shift) } else { 0 };
        let value = ((scalar[word] >> shift | above) & 31) + carry;
        carry = (value + 16) >> WINDOW_BITS;
        digits.put::<L>(i, lane, value.wrapping_sub(carry << WINDOW_BITS));
    }
}

/// Replaces the numerators by numerator / denominator, in clean digits: 0 where the denominator is 0. All
/// denominators of a lane are inverted together, as one product (Montgomery's trick).
fn divide<K: Kernels>(kernels: K, ratios: &mut [Ratio<K::Layout>]) {
    let mut product = Zeroizing::new(Element::small(1));
    let mut products = Zeroizing::new(Vec::with_capacity(ratios.len()));
    for Ratio { numerator, denominator } in ratios.iter_mut() {
        let zeros = denominator.zeros();
        numerator.replace(&zeros, 0);
        denominator.replace(&zeros, 1);
        products.push(*product);
        *product = kernels.multiply(&product, denominator);
    }
    let mut inverse = Zeroizing::new(invert(kernels, &product));
    for (Ratio { numerator, denominator }, product) in ratios.iter_mut().zip(products.iter()).rev() {
        let own = Zeroizing::new(kernels.multiply(&inverse, product));
        *inverse = kernels.multiply(&inverse, denominator);
        *numerator = kernels.multiply(numerator, &own);
    }
}

/// Computes x^(p - 2) = 1 / x, by 254 squarings and 11 multiplications.
fn invert<K: Kernels>(kernels: K, x: &Element<K::Layout>) -> Element<K::Layout> {
    let times = |a: &Element<_>, b: &Element<_>| Zeroizing::new(kernels.multiply(a, b));
    let square = |x: &Element<_>, count| Zeroizing::new(kernels.square(x, count));
    let x2 = square(x, 1);
    let x9 = times(&square(&x2, 2), x);
    let x11 = times(&x9, &x2);
    // ones_n = x^(2^n - 1)
    let ones_5 = times(&square(&x11, 1), &x9);
    let ones_10 = times(&square(&ones_5, 5), &ones_5);
    let ones_20 = times(&square(&ones_10, 10), &ones_10);
    let ones_40 = times(&square(&ones_20, 20), &ones_20);
    let ones_50 = times(&square(&ones_40, 10), &ones_10);
    let ones_100 = times(&square(&ones_50, 50), &ones_50);
    let ones_200 = times(&square(&ones_100, 100), &ones_100);
    let ones_250 = times(&square(&ones_200, 50), &ones_50);
    kernels.multiply(&square(&ones_250, 5), &x11)
}

/// Clamps the scalar (RFC 7748, section 5, `decodeScalar25519`).
fn clamped(scalar: &[u8; X25519_BYTES]) -> Zeroizing<[u64; 4]> {
    let mut words = Zeroizing::new(read_words(scalar));
    words[0] &= !7;
    words[3] = words[3] & u64::MAX >> 1 | 1 << 62;
    words
}

fn read_words(bytes: &[u8; X25519_BYTES]) -> [u64; 4] {
    std::array::from_fn(|i| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
        u64::from_le_bytes(word)
    })
}

fn write_words(words: &[u64; 4], bytes: &mut [u8; X25519_BYTES]) {
    bytes.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
}

impl<L: Layout> Default for LadderState<L> {
    fn default() -> Self {
        Self([Element::default(); 20])
    }
}

impl<L: Layout> Zeroize for LadderState<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<L: Layout> Default for CombState<L> {
    fn default() -> Self {
        Self([Element::default(); 16])
    }
}

impl<L: Layout> Zeroize for CombState<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
