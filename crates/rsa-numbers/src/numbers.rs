//! Numbers of a private key.

use crate::{
    KeySize,
    words::{self, Secret},
};

/// Numbers of an RSA private key (RFC 8017, section 3.2, second form), big-endian; leading zeros are allowed.
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

/// Reason for which kernels do not accept a key. The key is at fault in every case; a retry does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The modulus does not have 2048, 3072 or 4096 bits, or the primes do not have half of that each.
    #[error("unsupported RSA key: 2048, 3072 or 4096 bits with two primes of equal size are required")]
    UnsupportedSize,
    /// The numbers do not form an RSA key.
    #[error("the numbers of this RSA key are inconsistent")]
    Inconsistent,
}

/// [`Components`] as words, least significant first. Their sizes are those of one key of this [`KeySize`]; their
/// consistency has not been checked. Secrets are cleared on drop.
pub struct Numbers {
    /// Size of the modulus.
    pub size: KeySize,
    /// Modulus: [`KeySize::words`] words.
    pub n: Vec<u64>,
    /// Public exponent without leading zeros, at most as long as the largest modulus.
    pub e: Vec<u64>,
    /// First prime: [`KeySize::prime_words`] words, as for all following numbers; the top bit is set.
    pub p: Secret,
    /// Second prime; the top bit is set.
    pub q: Secret,
    /// See [`Components::dp`].
    pub dp: Secret,
    /// See [`Components::dq`].
    pub dq: Secret,
    /// See [`Components::qinv`].
    pub qinv: Secret,
}

impl Numbers {
    /// Parses the numbers and checks their sizes. Branches on lengths and on public numbers only.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        let public = |bytes: &[u8]| {
            let number = words::from_be_bytes(bytes, KeySize::Rsa4096.words());
            number.ok_or(KeyError::UnsupportedSize)
        };
        let (n, e) = (public(components.n)?, public(components.e)?);
        let size = KeySize::from_bits(words::bit_length(&n)).ok_or(KeyError::UnsupportedSize)?;
        let half = |bytes: &[u8]| words::from_be_bytes(bytes, size.prime_words());
        let (p, q) = half(components.p).zip(half(components.q)).ok_or(KeyError::UnsupportedSize)?;
        if [&p, &q].iter().any(|prime| words::bit_length(prime) != size.bits() / 2) {
            return Err(KeyError::UnsupportedSize);
        }
        let rest = half(components.dp).zip(half(components.dq)).zip(half(components.qinv));
        let ((dp, dq), qinv) = rest.ok_or(KeyError::Inconsistent)?;
        let e = e[..words::bit_length(&e).div_ceil(64)].to_vec();
        Ok(Self { size, n: n[..size.words()].to_vec(), e, p, q, dp, dq, qinv })
    }
}
