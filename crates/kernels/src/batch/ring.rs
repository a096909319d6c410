//! The integers modulo one modulus a lane: constants, two operands and a table, as vectors of digits.

use zeroize::Zeroizing;

use super::arithmetic::{Arithmetic, Digit, Radix, Vector};
use super::constants::RingConstants;
use quadrille_rsa_numbers::words;

/// Everything one exponentiation works on. Numbers are `radix.digits` vectors, least significant first.
pub(crate) struct Ring<A: Arithmetic> {
    pub(crate) radix: Radix,
    /// What the kernel knows of the moduli; see [`Arithmetic::modulus_constants`].
    pub(crate) modulus: Vec<A::Vector>,
    /// The kernel's own memory.
    pub(crate) scratch: Vec<A::Vector>,
    /// The operand that every operation replaces by its result.
    pub(crate) x: Vec<A::Vector>,
    /// The other operand of a multiplication.
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
    /// A ring with room for `powers` table entries.
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

    /// Gives `lane` its modulus.
    pub(crate) fn load(&mut self, lane: usize, constants: &RingConstants<A>) {
        self.modulus.resize(constants.modulus.len(), A::Vector::default());
        let pairs = [
            (&mut self.modulus, &constants.modulus),
            (&mut self.one, &constants.one),
            (&mut self.r_squared, &constants.r_squared),
            (&mut self.r_squared_high, &constants.r_squared_high),
            (&mut self.qinv, &constants.qinv),
        ];
        for (vectors, digits) in pairs {
            put::<A>(vectors, lane, digits);
        }
    }

    /// x = `number`, which is below 4n, in one lane.
    pub(crate) fn put_x(&mut self, lane: usize, number: &[u64]) {
        put::<A>(&mut self.x, lane, &A::encode(number, self.radix));
    }

    /// x of one lane as a two's complement number.
    pub(crate) fn get_x(&self, lane: usize, out: &mut [u64]) {
        let digits: Vec<_> = self.x.iter().map(|vector| vector.lanes()[lane]).collect();
        A::decode(&Zeroizing::new(digits), self.radix, out);
    }

    /// y = 1, not in Montgomery form: multiplying by it leaves that form.
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

    /// All memory of the ring.
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

/// Writes one lane of a number; `digits` may be shorter than the number, or empty for one that the ring lacks.
fn put<A: Arithmetic>(vectors: &mut [A::Vector], lane: usize, digits: &[Digit<A>]) {
    for (vector, &digit) in vectors.iter_mut().zip(digits) {
        vector.lanes_mut()[lane] = digit;
    }
}
