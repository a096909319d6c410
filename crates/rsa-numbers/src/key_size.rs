//! Key sizes that kernels support.

/// Size of an RSA key, by its modulus.
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

    /// Returns the size with a modulus of `bits` bits.
    pub fn from_bits(bits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bits() == bits)
    }

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
    pub const fn words(self) -> usize {
        self.bits() / 64
    }

    /// 64-bit words of a prime.
    pub const fn prime_words(self) -> usize {
        self.words() / 2
    }
}
