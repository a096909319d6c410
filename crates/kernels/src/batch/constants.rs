//! Constants of one key: those of its three rings, as digits of one lane, computed once.

use zeroize::Zeroizing;

use super::arithmetic::{Arithmetic, Digit, Ring, put};
use quadrille_rsa_numbers::{Numbers, words};

type Number<A> = Zeroizing<Vec<Digit<A>>>;

/// Constants of one key for one instruction set.
pub(crate) struct KeyConstants<A: Arithmetic> {
    /// Constants modulo p and modulo q.
    pub(crate) halves: [RingConstants<A>; 2],
    /// Constants modulo n.
    pub(crate) whole: RingConstants<A>,
}

/// Constants of one ring; see the fields of the same names in [`super::Ring`]. A number that the ring does not need
/// is empty.
pub(crate) struct RingConstants<A: Arithmetic> {
    pub(crate) modulus: Number<A>,
    pub(crate) one: Number<A>,
    pub(crate) r_squared: Number<A>,
    pub(crate) r_squared_high: Number<A>,
    pub(crate) qinv: Number<A>,
}

impl<A: Arithmetic> KeyConstants<A> {
    /// Computes the constants in some hundred microseconds, in constant time.
    pub(crate) fn new(numbers: &Numbers) -> Self {
        Self {
            halves: [
                RingConstants::of_prime(&numbers.p, Some(&numbers.qinv)),
                RingConstants::of_prime(&numbers.q, None),
            ],
            whole: RingConstants::new(&numbers.n),
        }
    }
}

impl<A: Arithmetic> RingConstants<A> {
    fn new(modulus: &[u64]) -> Self {
        let radix = A::radix(64 * modulus.len());
        let one = r_mod(modulus, radix.montgomery_bits());
        let r_squared = words::shift_mod(&one, modulus, radix.montgomery_bits());
        Self {
            modulus: A::modulus_constants(modulus, radix),
            one: A::encode(&one, radix),
            r_squared: A::encode(&r_squared, radix),
            r_squared_high: Zeroizing::default(),
            qinv: Zeroizing::default(),
        }
    }

    fn of_prime(prime: &[u64], qinv: Option<&[u64]>) -> Self {
        let radix = A::radix(64 * prime.len());
        let one = r_mod(prime, radix.montgomery_bits());
        let high = words::shift_mod(&one, prime, radix.montgomery_bits() + 64 * prime.len());
        let qinv = qinv.map(|qinv| words::shift_mod(qinv, prime, radix.montgomery_bits()));
        Self {
            r_squared_high: A::encode(&high, radix),
            qinv: qinv.map(|qinv| A::encode(&qinv, radix)).unwrap_or_default(),
            ..Self::new(prime)
        }
    }
}

impl<A: Arithmetic> Ring<A> {
    /// Loads the modulus of `lane`.
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
}

/// Computes 2^bits mod n for an n with its top bit set.
fn r_mod(modulus: &[u64], bits: usize) -> words::Secret {
    let mut top_bit = words::secret(modulus.len());
    top_bit[modulus.len() - 1] = 1 << 63; // below n, as n is odd and has this bit
    words::shift_mod(&top_bit, modulus, bits - (64 * modulus.len() - 1))
}
