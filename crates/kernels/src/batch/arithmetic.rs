//! Interface to an instruction set, and the rings on which it operates.

use zeroize::{DefaultIsZeroes, Zeroizing};

use quadrille_rsa_numbers::words;

/// Representation of numbers of one size in digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Radix {
    /// Bits of a digit.
    pub(crate) bits: usize,
    /// Number of digits, L. The Montgomery radix is R = 2^(bits * digits).
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

    /// Digits, one per lane.
    fn lanes(&self) -> &[Self::Digit];

    /// Digits, one per lane.
    fn lanes_mut(&mut self) -> &mut [Self::Digit];
}

/// Digit of one lane.
pub(crate) type Digit<A> = <<A as Arithmetic>::Vector as Vector>::Digit;

/// Modular arithmetic on `LANES` independent numbers at once. A value of the type is the proof that the CPU supports
/// it.
///
/// Products are *almost* reduced: the result of a multiplication is congruent to x y / R and in (-2n, 3n), and may be
/// multiplied again.
pub(crate) trait Arithmetic: Copy + Send + Sync + 'static {
    /// One digit of every lane.
    type Vector: Vector;

    /// Number of operations that run at once.
    const LANES: usize;

    /// Number of rings for one call: 2 if a kernel hides the latency of one behind the other, 1 if that gains
    /// nothing, since one ring's table alone stays in the first-level cache.
    const STREAMS: usize;

    /// Bits of the exponent consumed by one multiplication.
    const WINDOW: usize;

    /// Representation of numbers modulo an n of `modulus_bits` bits.
    fn radix(modulus_bits: usize) -> Radix;

    /// Constants of the odd modulus n for the kernels, in the order in which they are read.
    fn modulus_constants(modulus: &[u64], radix: Radix) -> Zeroizing<Vec<Digit<Self>>>;

    /// Number of scratch vectors that the kernels need.
    fn scratch(radix: Radix) -> usize;

    /// Converts a number of [0, 4n) to digits.
    fn encode(number: &[u64], radix: Radix) -> Zeroizing<Vec<Digit<Self>>>;

    /// Converts the digits to a two's complement number of `out.len()` words.
    fn decode(digits: &[Digit<Self>], radix: Radix, out: &mut [u64]);

    /// Computes x = x * y / R mod n, in each ring.
    fn multiply(self, rings: &mut [Ring<Self>]);

    /// Computes x = x * x / R mod n, in each ring.
    fn square(self, rings: &mut [Ring<Self>]);

    /// Computes y = table[index], each lane with its own index, by reading the whole table.
    fn select(self, ring: &mut Ring<Self>, index: &[u64]);

    /// Computes x += y, digits normalised.
    fn add(x: &mut [Self::Vector], y: &[Self::Vector], radix: Radix);

    /// Clears the vector registers.
    fn wipe_registers();
}

/// Memory of one exponentiation. Numbers are `radix.digits` vectors, least significant first.
pub(crate) struct Ring<A: Arithmetic> {
    pub(crate) radix: Radix,
    /// Constants of the moduli; see [`Arithmetic::modulus_constants`].
    pub(crate) modulus: Vec<A::Vector>,
    /// Scratch memory of the kernel.
    pub(crate) scratch: Vec<A::Vector>,
    /// Operand that every operation replaces by its result.
    pub(crate) x: Vec<A::Vector>,
    /// Second operand of a multiplication.
    pub(crate) y: Vec<A::Vector>,
    /// R mod n: one, in Montgomery form.
    pub(crate) one: Vec<A::Vector>,
    /// R^2 mod n.
    pub(crate) r_squared: Vec<A::Vector>,
    /// R^2 2^half mod n, where half is the size of the primes.
    pub(crate) r_squared_high: Vec<A::Vector>,
    /// R qInv mod n in the ring of p.
    pub(crate) qinv: Vec<A::Vector>,
    /// Powers of the input, one after the other.
    pub(crate) table: Vec<A::Vector>,
}

impl<A: Arithmetic> Ring<A> {
    /// Creates a ring with room for `powers` table entries.
    pub(crate) fn new(radix: Radix, powers: usize) -> Self {
        let number = || vec![A::Vector::default(); radix.digits];
        Self {
            radix,
            modulus: Vec::new(),
            scratch: vec![A::Vector::default(); A::scratch(radix)],
            x: number(),
            y: number(),
            one: number(),
            r_squared: number(),
            r_squared_high: number(),
            qinv: number(),
            table: vec![A::Vector::default(); powers * radix.digits],
        }
    }

    /// Sets x = `number`, which is below 4n, in one lane.
    pub(crate) fn put_x(&mut self, lane: usize, number: &[u64]) {
        put::<A>(&mut self.x, lane, &A::encode(number, self.radix));
    }

    /// Reads x of one lane as a two's complement number.
    pub(crate) fn get_x(&self, lane: usize, out: &mut [u64]) {
        let digits: Vec<_> = self.x.iter().map(|vector| vector.lanes()[lane]).collect();
        A::decode(&Zeroizing::new(digits), self.radix, out);
    }

    /// Sets y = 1, not in Montgomery form: multiplying by it leaves that form.
    pub(crate) fn set_y_to_unit(&mut self) {
        let unit = A::encode(&[1], self.radix);
        (0..A::LANES).for_each(|lane| put::<A>(&mut self.y, lane, &unit));
    }

    /// Clears all memory of the ring.
    pub(crate) fn wipe(&mut self) {
        self.parts_mut().into_iter().for_each(|part| words::wipe(part));
    }

    #[cfg(test)]
    pub(crate) fn is_clear(&mut self) -> bool {
        let zero = <A::Vector as Vector>::Digit::default();
        let is_zero = |vector: &A::Vector| vector.lanes().iter().all(|&digit| digit == zero);
        self.parts_mut().into_iter().all(|part| part.iter().all(is_zero))
    }

    /// Returns all memory of the ring.
    pub(crate) fn parts_mut(&mut self) -> [&mut Vec<A::Vector>; 9] {
        [
            &mut self.modulus,
            &mut self.scratch,
            &mut self.x,
            &mut self.y,
            &mut self.one,
            &mut self.r_squared,
            &mut self.r_squared_high,
            &mut self.qinv,
            &mut self.table,
        ]
    }
}

/// Writes one lane of a number; `digits` may be shorter than the number, or empty for a number that the ring lacks.
pub(super) fn put<A: Arithmetic>(vectors: &mut [A::Vector], lane: usize, digits: &[Digit<A>]) {
    for (vector, &digit) in vectors.iter_mut().zip(digits) {
        vector.lanes_mut()[lane] = digit;
    }
}
