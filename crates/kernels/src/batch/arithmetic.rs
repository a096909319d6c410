//! What an instruction set supplies.

use zeroize::{DefaultIsZeroes, Zeroizing};

use super::Ring;

/// How numbers of one size are cut into digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Radix {
    /// Bits of a digit.
    pub(crate) bits: usize,
    /// Digits of a number, L. The Montgomery radix is R = 2^(bits * digits).
    pub(crate) digits: usize,
}

impl Radix {
    /// log2 of R.
    pub(crate) const fn montgomery_bits(self) -> usize {
        self.bits * self.digits
    }
}

/// One digit of every lane.
pub(crate) trait Vector: Copy + Default + Send + Sync + 'static {
    /// One digit of one lane. All bits zero is zero.
    type Digit: DefaultIsZeroes + PartialEq + std::fmt::Debug + Send + Sync + 'static;

    /// The digits, one a lane.
    fn lanes(&self) -> &[Self::Digit];

    /// The digits, one a lane.
    fn lanes_mut(&mut self) -> &mut [Self::Digit];
}

/// The digit of one lane.
pub(crate) type Digit<A> = <<A as Arithmetic>::Vector as Vector>::Digit;

/// Modular arithmetic on `LANES` independent numbers at once. A value of the type is the proof that the CPU
/// can do it.
///
/// Products are *almost* reduced: the result of a multiplication is congruent to x y / R and lies in
/// (-2n, 3n), and such results may be multiplied again.
pub(crate) trait Arithmetic: Copy + Send + Sync + 'static {
    /// One digit of every lane.
    type Vector: Vector;

    /// How many operations run at once.
    const LANES: usize;

    /// How many rings one call should work on: 2 if a kernel hides the latency of one behind the other, 1 if
    /// that gains nothing, since one ring's table alone stays in the first-level cache.
    const STREAMS: usize;

    /// Bits of the exponent consumed by one multiplication.
    const WINDOW: usize;

    /// How numbers modulo an n of `modulus_bits` bits are represented.
    fn radix(modulus_bits: usize) -> Radix;

    /// What the kernels need to know of the odd modulus n, in the order in which they read it.
    fn modulus_constants(modulus: &[u64], radix: Radix) -> Zeroizing<Vec<Digit<Self>>>;

    /// How many vectors the kernels need for themselves.
    fn scratch(radix: Radix) -> usize;

    /// A number of [0, 4n) as digits.
    fn encode(number: &[u64], radix: Radix) -> Zeroizing<Vec<Digit<Self>>>;

    /// The digits as a two's complement number of `out.len()` words.
    fn decode(digits: &[Digit<Self>], radix: Radix, out: &mut [u64]);

    /// x = x * y / R mod n, in each ring.
    fn multiply(self, rings: &mut [Ring<Self>]);

    /// x = x * x / R mod n, in each ring.
    fn square(self, rings: &mut [Ring<Self>]);

    /// y = table[index], each lane with its own index, by reading the whole table.
    fn select(self, ring: &mut Ring<Self>, index: &[u64]);

    /// x += y, digits normalised.
    fn add(x: &mut [Self::Vector], y: &[Self::Vector], radix: Radix);

    /// Clears the vector registers.
    fn wipe_registers();
}
