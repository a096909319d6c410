//! An RSA private key, taken apart and checked once so that every operation after can be fast.

use std::fmt;
use std::sync::OnceLock;

use crate::batch::KeyConstants;
use crate::portable::ScalarKey;
use crate::words::{self, Secret};
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{fma47::Fma47, ifma::Ifma};

/// The key sizes that lanes compute.
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

    /// 64-bit words of the modulus.
    pub(crate) const fn words(self) -> usize {
        self.bits() / 64
    }

    /// 64-bit words of a prime.
    pub(crate) const fn half_words(self) -> usize {
        self.words() / 2
    }

    fn of_bits(bits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bits() == bits)
    }
}

/// The numbers of an RSA private key (RFC 8017, section 3.2, second form), big-endian; leading zeros are
/// allowed.
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

/// Why a key cannot be prepared. The key is at fault in every case; none is worth a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The modulus is not of 2048, 3072 or 4096 bits, or the primes are not of half that each.
    #[error("lanes compute RSA keys of 2048, 3072 and 4096 bits with two primes of equal size, not this one")]
    UnsupportedSize,
    /// The numbers are not those of one RSA key.
    #[error("the numbers of this RSA key do not belong together")]
    Inconsistent,
}

/// An RSA private key ready for [`Lanes`](crate::Lanes). Prepare it once and share it; its secrets are
/// cleared from memory when it is dropped.
pub struct PrivateKey {
    pub(crate) size: KeySize,
    pub(crate) n: Vec<u64>,
    pub(crate) e: Vec<u64>,
    pub(crate) p: Secret,
    pub(crate) q: Secret,
    pub(crate) dp: Secret,
    pub(crate) dq: Secret,
    pub(crate) qinv: Secret,
    pub(crate) scalar: ScalarKey,
    #[cfg(target_arch = "x86_64")]
    pub(crate) ifma: OnceLock<KeyConstants<Ifma>>,
    #[cfg(target_arch = "x86_64")]
    pub(crate) fma47: OnceLock<KeyConstants<Fma47>>,
}

impl PrivateKey {
    /// Checks that the numbers make one RSA key (any odd e from 3 to n) of a size that lanes compute.
    pub fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        let public = |bytes: &[u8]| {
            let widest = KeySize::Rsa4096.words();
            words::from_be_bytes(bytes, widest).ok_or(KeyError::UnsupportedSize)
        };
        let (n, e) = (public(components.n)?, public(components.e)?);
        let size = KeySize::of_bits(words::bit_length(&n)).ok_or(KeyError::UnsupportedSize)?;
        let half = |bytes: &[u8]| words::from_be_bytes(bytes, size.half_words());
        let (p, q) = half(components.p).zip(half(components.q)).ok_or(KeyError::UnsupportedSize)?;
        if [&p, &q].iter().any(|prime| words::bit_length(prime) != size.bits() / 2) {
            return Err(KeyError::UnsupportedSize);
        }
        let rest = half(components.dp).zip(half(components.dq)).zip(half(components.qinv));
        let ((dp, dq), qinv) = rest.ok_or(KeyError::Inconsistent)?;
        Ok(Self {
            size,
            n: n[..size.words()].to_vec(),
            e: e[..words::bit_length(&e).div_ceil(64)].to_vec(),
            p,
            q,
            dp,
            dq,
            qinv,
            scalar: ScalarKey::new(components)?,
            #[cfg(target_arch = "x86_64")]
            ifma: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            fma47: OnceLock::new(),
        })
    }

    /// The size of the modulus.
    pub fn size(&self) -> KeySize {
        self.size
    }
}

impl fmt::Debug for PrivateKey {
    /// Says the size and nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("size", &self.size).finish_non_exhaustive()
    }
}
