//! RSA private key in the form used by the kernels: checked once, with all values that depend on the key alone.

use quadrille_rsa_numbers::{
    Components, KeySize, Numbers,
    words::{self, Secret},
};
use std::fmt;
use zeroize::Zeroizing;

/// Kernel parameters of a key size.
pub(crate) trait KernelSize {
    /// Number of 32-bit words of a prime: W in the kernels.
    fn half_words(self) -> usize;
    /// Number of threads that compute one operation together: 2 T in the kernels.
    fn threads(self) -> usize;
    /// Number of words of `struct Key` in kernel/rsa.cuh.
    fn key_words(self) -> usize;
    /// Number of words of the window table of one warp: `TABLE_WORDS` in kernel/rsa.cuh.
    fn table_words(self) -> usize;
    /// Number of products of two 32-bit words in one operation of kernel/rsa.cuh, with the public exponent 65537.
    fn products(self) -> usize;
    /// Entry point in kernel/rsa.cu.
    fn kernel(self) -> &'static std::ffi::CStr;
    /// Number of words of the window table of one warp: `TABLE_WORDS` in kernel/rsa52.cuh.
    fn table_words52(self) -> usize;
    /// Number of 52-bit digits of a prime.
    fn digits52(self) -> usize;
    /// Number of products of two 52-bit digits in one operation of kernel/rsa52.cuh.
    fn products52(self) -> usize;
    /// The three entry points in kernel/rsa.cu for this size on FP64 units, if supported.
    fn kernels52(self) -> Option<[&'static std::ffi::CStr; 3]>;
}

impl KernelSize for KeySize {
    fn half_words(self) -> usize {
        self.bits() / 64
    }

    fn threads(self) -> usize {
        match self {
            Self::Rsa2048 | Self::Rsa3072 => 8,
            Self::Rsa4096 => 16,
        }
    }

    fn key_words(self) -> usize {
        13 * self.half_words() + 4
    }

    fn table_words(self) -> usize {
        16 * 32 * (2 * self.half_words() / self.threads())
    }

    fn products(self) -> usize {
        const fn multiplication(words: usize) -> usize {
            2 * words * words + words
        }
        let half = self.half_words();
        // Conversion to residues, and the table; five for each window of four bits; conversion back; and the
        // recombination.
        let of_half = 19 + 5 * (8 * half - 1) + 1 + 1;
        // Conversion to Montgomery form and back, 16 squarings and two multiplications.
        let of_check = 3 + 16 + 2;
        2 * (of_half * multiplication(half) + half * half) + of_check * multiplication(2 * half)
    }

    fn table_words52(self) -> usize {
        8 * 32 * 2 * self.digits52()
    }

    fn digits52(self) -> usize {
        match self {
            Self::Rsa2048 => 20,
            Self::Rsa3072 => 30,
            Self::Rsa4096 => 40,
        }
    }

    fn products52(self) -> usize {
        let digits = self.digits52();
        let rows = if digits.is_multiple_of(4) { 4 } else { 5 };
        let squaring = digits * digits + digits * (digits + rows) / 2;
        let windows = (self.bits() / 2).div_ceil(3);
        // The table; the windows; the conversion from Montgomery form.
        2 * (3 * (windows - 1) * squaring + (6 + windows - 1 + 1) * 2 * digits * digits)
    }

    fn kernel(self) -> &'static std::ffi::CStr {
        match self {
            Self::Rsa2048 => c"quadrille_rsa2048",
            Self::Rsa3072 => c"quadrille_rsa3072",
            Self::Rsa4096 => c"quadrille_rsa4096",
        }
    }

    fn kernels52(self) -> Option<[&'static std::ffi::CStr; 3]> {
        match self {
            Self::Rsa2048 => Some([
                c"quadrille_rsa2048_prepare",
                c"quadrille_rsa2048_exponentiate",
                c"quadrille_rsa2048_finish",
            ]),
            Self::Rsa3072 => Some([
                c"quadrille_rsa3072_prepare",
                c"quadrille_rsa3072_exponentiate",
                c"quadrille_rsa3072_finish",
            ]),
            // A thread has too few registers for the digits of this size.
            Self::Rsa4096 => None,
        }
    }
}

/// Reason for which the GPU does not accept a key. Other backends may; a retry does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No kernel supports it.
    #[error(transparent)]
    Numbers(#[from] quadrille_rsa_numbers::KeyError),
    /// The public exponent has more than 32 bits, which is very rare.
    #[error("the GPU supports only RSA keys with public exponents below 2^32")]
    UnsupportedExponent,
    /// The uppermost word of the modulus or of a prime is nearly all ones, as in one key in a thousand million: the
    /// arithmetic needs that room.
    #[error("the GPU supports only RSA keys with numbers that are not too close to a power of two")]
    UnsupportedNumbers,
}

/// RSA private key, ready to be uploaded by [`Gpu::upload`](crate::Gpu::upload). Its memory is cleared on drop.
pub struct PrivateKey {
    pub(crate) size: KeySize,
    pub(crate) n: Vec<u64>,
    pub(crate) e: u32,
    /// Words of `struct Key` of kernel/rsa.cuh.
    pub(crate) words: Zeroizing<Vec<u32>>,
}

impl PrivateKey {
    /// Checks that the numbers form one RSA key that the GPU supports. Takes some milliseconds.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        let numbers = Numbers::new(components)?;
        let e = small_exponent(&numbers.e).ok_or(KeyError::UnsupportedExponent)?;
        if !belong_together(&numbers, e) {
            return Err(quadrille_rsa_numbers::KeyError::Inconsistent.into());
        }
        let Numbers { size, n, p, q, .. } = &numbers;
        if [&n[..], p, q].iter().any(|number| number[number.len() - 1] >> 32 > LARGEST_TOP) {
            return Err(KeyError::UnsupportedNumbers);
        }
        Ok(Self { size: *size, words: constants(&numbers, e), e, n: numbers.n })
    }

    /// Size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// Words to upload, for tests that run the kernels without a driver. They are as secret as the key.
    #[doc(hidden)]
    pub fn words_for_tests(&self) -> Vec<u32> {
        self.words.to_vec()
    }
}

impl PrivateKey {
    /// Flips a bit of the words to upload, for tests with a damaged key.
    #[doc(hidden)]
    pub fn flip_for_tests(&mut self, bit: usize) {
        self.words[bit / 32] ^= 1 << (bit % 32);
    }
}

impl fmt::Debug for PrivateKey {
    /// Shows the size, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Largest uppermost word of a modulus: see the bounds in docs/kernels/cuda.md.
const LARGEST_TOP: u64 = 0xffff_fffb;

fn small_exponent(e: &[u64]) -> Option<u32> {
    match *e {
        [] => Some(0),
        [e] => e.try_into().ok(),
        _ => None,
    }
}

fn belong_together(Numbers { n, p, q, dp, dq, qinv, .. }: &Numbers, e: u32) -> bool {
    let mut product = words::secret(n.len());
    words::multiply(&mut product, p, q);
    let odd = p[0] & q[0] & u64::from(e) & 1 == 1;
    odd && e >= 3
        && words::equal(&product, n)
        && is_inverse(dp, &[u64::from(e)], &less_one(p))
        && is_inverse(dq, &[u64::from(e)], &less_one(q))
        && is_inverse(qinv, q, p)
}

/// Computes `struct Key` of kernel/rsa.cuh, member by member.
fn constants(numbers: &Numbers, e: u32) -> Zeroizing<Vec<u32>> {
    let Numbers { size, n, p, q, dp, dq, qinv, .. } = numbers;
    let half = 32 * size.half_words();
    let mut out = Zeroizing::new(Vec::with_capacity(size.key_words()));
    push(&mut out, n);
    push(&mut out, &power_of_two(2 * (2 * half + 32), n));
    push(&mut out, p);
    push(&mut out, q);
    let squares = [p, q].map(|prime| power_of_two(2 * (half + 32), prime));
    squares.iter().for_each(|square| push(&mut out, square));
    for (square, prime) in squares.iter().zip([p, q]) {
        push(&mut out, &words::shift_mod(square, prime, half));
    }
    push(&mut out, dp);
    push(&mut out, dq);
    push(&mut out, &words::shift_mod(qinv, p, half + 32));
    out.extend([p, q].map(|prime| words::negated_inverse(prime[0]) as u32));
    out.extend([words::negated_inverse(n[0]) as u32, e]);
    debug_assert_eq!(out.len(), size.key_words(), "the vector was not reallocated, which would leave a copy");
    out
}

fn push(out: &mut Vec<u32>, number: &[u64]) {
    out.extend(number.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]));
}

/// Computes 2^power mod n.
fn power_of_two(power: usize, n: &[u64]) -> Secret {
    let mut one = words::secret(n.len());
    one[0] = 1;
    words::shift_mod(&one, n, power)
}

/// Computes x - 1 for odd x.
fn less_one(x: &[u64]) -> Secret {
    let mut less = Zeroizing::new(x.to_vec());
    less[0] &= !1;
    less
}

/// Returns whether a < n and a b = 1 mod n, for any b. Doubles and adds, with masks instead of branches.
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
