//! An RSA private key as the kernels want it: checked once, with everything that depends on the key alone.

use crate::words::{self, Secret};
use std::fmt;
use zeroize::Zeroizing;

/// The key sizes that the GPU computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySize {
    /// A modulus of 2048 bits, two primes of 1024.
    Rsa2048,
    /// A modulus of 3072 bits, two primes of 1536.
    Rsa3072,
    /// A modulus of 4096 bits, two primes of 2048.
    Rsa4096,
}

impl KeySize {
    /// Every size, smallest first.
    pub const ALL: [Self; 3] = [Self::Rsa2048, Self::Rsa3072, Self::Rsa4096];

    /// Bits of the modulus.
    pub const fn bits(self) -> usize {
        match self {
            Self::Rsa2048 => 2048,
            Self::Rsa3072 => 3072,
            Self::Rsa4096 => 4096,
        }
    }

    /// Bytes of the modulus, of every input and of every output.
    pub const fn bytes(self) -> usize {
        self.bits() / 8
    }

    /// The size with so many bits.
    pub fn of_bits(bits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bits() == bits)
    }

    /// 32-bit words of a prime: W in the kernels.
    pub(crate) const fn half_words(self) -> usize {
        self.bits() / 64
    }

    /// Threads that compute one operation together: 2 T in the kernels.
    pub(crate) const fn threads(self) -> usize {
        match self {
            Self::Rsa2048 | Self::Rsa3072 => 8,
            Self::Rsa4096 => 16,
        }
    }

    /// Words of `struct Key` in kernel/rsa.cuh.
    pub(crate) const fn key_words(self) -> usize {
        13 * self.half_words() + 4
    }

    /// Words of the window table of one warp: `TABLE_WORDS` in kernel/rsa.cuh.
    pub(crate) const fn table_words(self) -> usize {
        16 * 32 * (2 * self.half_words() / self.threads())
    }

    /// Products of two 32-bit words in one operation of kernel/rsa.cuh, with the public exponent 65537.
    pub(crate) const fn products(self) -> usize {
        const fn multiplication(words: usize) -> usize {
            2 * words * words + words
        }
        let half = self.half_words();
        // Into the residues and the table; five for each window of four bits; out; and the recombination's.
        let of_half = 19 + 5 * (8 * half - 1) + 1 + 1;
        // Into Montgomery form and out, 16 squarings and two multiplications.
        let of_check = 3 + 16 + 2;
        2 * (of_half * multiplication(half) + half * half) + of_check * multiplication(2 * half)
    }

    /// The entrance in kernel/rsa.cu.
    pub(crate) const fn kernel(self) -> &'static std::ffi::CStr {
        match self {
            Self::Rsa2048 => c"quadrille_rsa2048",
            Self::Rsa3072 => c"quadrille_rsa3072",
            Self::Rsa4096 => c"quadrille_rsa4096",
        }
    }
}

/// The numbers of an RSA private key (RFC 8017, section 3.2, second form), big-endian; leading zeros are allowed.
#[derive(Clone, Copy)]
pub struct Components<'a> {
    /// The modulus, p * q.
    pub n: &'a [u8],
    /// The public exponent.
    pub e: &'a [u8],
    /// The first prime.
    pub p: &'a [u8],
    /// The second prime.
    pub q: &'a [u8],
    /// e^-1 mod (p - 1).
    pub dp: &'a [u8],
    /// e^-1 mod (q - 1).
    pub dq: &'a [u8],
    /// q^-1 mod p.
    pub qinv: &'a [u8],
}

/// Why the GPU does not compute with a key. Other backends may; trying again is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The modulus is not of 2048, 3072 or 4096 bits, or the primes are not of half that each.
    #[error(
        "the GPU computes RSA keys of 2048, 3072 and 4096 bits with two primes of equal size, not this one"
    )]
    UnsupportedSize,
    /// The public exponent has more than 32 bits, which next to no key has.
    #[error("the GPU computes RSA keys with public exponents below 2^32, not this one")]
    UnsupportedExponent,
    /// The uppermost word of the modulus or of a prime is nearly all ones, which one key in a thousand million has:
    /// the arithmetic wants that room.
    #[error("the GPU computes RSA keys whose numbers leave some room below a power of two, not this one")]
    UnsupportedNumbers,
    /// The numbers are not those of one RSA key.
    #[error("the numbers of this RSA key do not belong together")]
    Inconsistent,
}

/// An RSA private key, ready to be uploaded by [`Gpu::upload`](crate::Gpu::upload). Its memory is cleared when it is
/// dropped.
pub struct PrivateKey {
    pub(crate) size: KeySize,
    pub(crate) n: Vec<u64>,
    pub(crate) e: u32,
    /// `struct Key` of kernel/rsa.cuh.
    pub(crate) words: Zeroizing<Vec<u32>>,
}

impl PrivateKey {
    /// Checks that the numbers make one RSA key that the GPU computes with. Takes some milliseconds.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        let widest = KeySize::Rsa4096.bits() / 64;
        let n = words::from_be_bytes(components.n, widest).ok_or(KeyError::UnsupportedSize)?;
        let size = KeySize::of_bits(words::bit_length(&n)).ok_or(KeyError::UnsupportedSize)?;
        let n = n[..size.bits() / 64].to_vec();
        let half = |bytes: &[u8]| words::from_be_bytes(bytes, n.len() / 2);
        let (p, q) = half(components.p).zip(half(components.q)).ok_or(KeyError::UnsupportedSize)?;
        if [&p, &q].iter().any(|prime| words::bit_length(prime) != size.bits() / 2) {
            return Err(KeyError::UnsupportedSize);
        }
        let rest = half(components.dp).zip(half(components.dq)).zip(half(components.qinv));
        let ((dp, dq), qinv) = rest.ok_or(KeyError::Inconsistent)?;
        let e = words::from_be_bytes(components.e, 1).ok_or(KeyError::UnsupportedExponent)?[0];
        let e = u32::try_from(e).map_err(|_| KeyError::UnsupportedExponent)?;
        let numbers = Numbers { n: &n, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv, e };
        if !numbers.belong_together() {
            return Err(KeyError::Inconsistent);
        }
        if [&n[..], &p, &q].iter().any(|number| number[number.len() - 1] >> 32 > LARGEST_TOP) {
            return Err(KeyError::UnsupportedNumbers);
        }
        Ok(Self { size, words: numbers.constants(size), e, n })
    }

    /// The size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// What would be uploaded, for tests that run the kernels without a driver. It is as secret as the key.
    #[doc(hidden)]
    pub fn words_for_tests(&self) -> Vec<u32> {
        self.words.to_vec()
    }
}

impl fmt::Debug for PrivateKey {
    /// Says the size and nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("size", &self.size).finish_non_exhaustive()
    }
}

/// The largest uppermost word of a modulus: see the bounds in docs/kernels/cuda.md.
const LARGEST_TOP: u64 = 0xffff_fffb;

struct Numbers<'a> {
    n: &'a [u64],
    p: &'a [u64],
    q: &'a [u64],
    dp: &'a [u64],
    dq: &'a [u64],
    qinv: &'a [u64],
    e: u32,
}

impl Numbers<'_> {
    fn belong_together(&self) -> bool {
        let mut product = words::secret(self.n.len());
        words::multiply(&mut product, self.p, self.q);
        let odd = self.p[0] & self.q[0] & u64::from(self.e) & 1 == 1;
        odd && self.e >= 3
            && words::equal(&product, self.n)
            && is_inverse(self.dp, &[u64::from(self.e)], &less_one(self.p))
            && is_inverse(self.dq, &[u64::from(self.e)], &less_one(self.q))
            && is_inverse(self.qinv, self.q, self.p)
    }

    /// `struct Key` of kernel/rsa.cuh, member by member.
    fn constants(&self, size: KeySize) -> Zeroizing<Vec<u32>> {
        let half = 32 * size.half_words();
        let mut out = Zeroizing::new(Vec::with_capacity(size.key_words()));
        push(&mut out, self.n);
        push(&mut out, &power_of_two(2 * (2 * half + 32), self.n));
        push(&mut out, self.p);
        push(&mut out, self.q);
        let squares = [self.p, self.q].map(|prime| power_of_two(2 * (half + 32), prime));
        squares.iter().for_each(|square| push(&mut out, square));
        for (square, prime) in squares.iter().zip([self.p, self.q]) {
            push(&mut out, &words::shift_mod(square, prime, half));
        }
        push(&mut out, self.dp);
        push(&mut out, self.dq);
        push(&mut out, &words::shift_mod(self.qinv, self.p, half + 32));
        out.extend([self.p, self.q, self.n].map(|modulus| words::negated_inverse(modulus[0]) as u32));
        out.push(self.e);
        debug_assert_eq!(out.len(), size.key_words(), "nothing was moved to larger memory, unwiped");
        out
    }
}

fn push(out: &mut Vec<u32>, number: &[u64]) {
    out.extend(number.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]));
}

/// 2^power mod n.
fn power_of_two(power: usize, n: &[u64]) -> Secret {
    let mut one = words::secret(n.len());
    one[0] = 1;
    words::shift_mod(&one, n, power)
}

/// x - 1 for odd x.
fn less_one(x: &[u64]) -> Secret {
    let mut less = Zeroizing::new(x.to_vec());
    less[0] &= !1;
    less
}

/// Whether a < n and a b = 1 mod n, for any b. Doubles and adds, with masks instead of branches.
fn is_inverse(a: &[u64], b: &[u64], n: &[u64]) -> bool {
    if words::less_mask(a, n) == 0 {
        return false;
    }
    let mut product = words::secret(n.len() + 1);
    for bit in (0..64 * b.len()).rev() {
        let doubled = words::shift_mod(&product[..n.len()], n, 1);
        product[..n.len()].copy_from_slice(&doubled);
        words::add_masked(&mut product, a, words::bits(b, bit, 1).wrapping_neg());
        words::reduce_once(&mut product, n);
    }
    product[0] ^= 1;
    product.iter().fold(0, |all, word| all | word) == 0
}
