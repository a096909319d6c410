//! Parameter sets (FIPS 204, table 1), and lengths (table 2).

/// Parameter set of ML-DSA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MlDsa {
    /// ML-DSA-44, of security category 2.
    MlDsa44,
    /// ML-DSA-65, of security category 3.
    MlDsa65,
    /// ML-DSA-87, of security category 5.
    MlDsa87,
}

impl MlDsa {
    /// All parameter sets.
    pub const ALL: [Self; 3] = [Self::MlDsa44, Self::MlDsa65, Self::MlDsa87];

    /// Bytes of an encoded public key.
    pub const fn public_key_bytes(self) -> usize {
        32 + 320 * self.parameters().k
    }

    /// Bytes of an encoded private key in the expanded form (FIPS 204, algorithm 24).
    pub const fn private_key_bytes(self) -> usize {
        let parameters = self.parameters();
        128 + 32 * (parameters.small_bits() * (parameters.k + parameters.l) + 13 * parameters.k)
    }

    /// Bytes of a signature.
    pub const fn signature_bytes(self) -> usize {
        let parameters = self.parameters();
        parameters.challenge + parameters.mask_bytes() * parameters.l + parameters.omega + parameters.k
    }

    pub(crate) const fn parameters(self) -> &'static Parameters {
        match self {
            Self::MlDsa44 => &ML_DSA_44,
            Self::MlDsa65 => &ML_DSA_65,
            Self::MlDsa87 => &ML_DSA_87,
        }
    }
}

/// Greatest numbers of rows and of columns.
pub(crate) const MAX_K: usize = 8;
pub(crate) const MAX_L: usize = 7;
/// Bytes of the longest challenge hash and of the longest signature.
pub(crate) const MAX_CHALLENGE: usize = 64;
pub(crate) const MAX_SIGNATURE: usize = MlDsa::MlDsa87.signature_bytes();
/// Greatest number of bytes of w1.
pub(crate) const MAX_HIGH: usize = 1024;

/// Constants of a parameter set, with the standard's names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Rows of A.
    pub(crate) k: usize,
    /// Columns of A.
    pub(crate) l: usize,
    /// Greatest coefficient of s1 and s2.
    pub(crate) eta: i32,
    /// Number of coefficients of c that are not zero.
    pub(crate) tau: usize,
    /// Bits of a coefficient of y: gamma1 is 2^(bits - 1).
    pub(crate) mask_bits: u32,
    pub(crate) gamma2: Gamma2,
    /// Greatest number of hints.
    pub(crate) omega: usize,
    /// Bytes of the challenge hash: lambda / 4.
    pub(crate) challenge: usize,
}

/// The two low-order rounding ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gamma2 {
    /// (q - 1) / 88
    Of88,
    /// (q - 1) / 32
    Of32,
}

impl Gamma2 {
    pub(crate) const fn value(self) -> i32 {
        match self {
            Self::Of88 => 95_232,
            Self::Of32 => 261_888,
        }
    }

    /// Number of high parts.
    pub(crate) const fn highs(self) -> u8 {
        match self {
            Self::Of88 => 44,
            Self::Of32 => 16,
        }
    }

    /// Bits of a coefficient of w1.
    pub(crate) const fn high_bits(self) -> usize {
        match self {
            Self::Of88 => 6,
            Self::Of32 => 4,
        }
    }
}

impl Parameters {
    pub(crate) const fn beta(&self) -> i32 {
        self.tau as i32 * self.eta
    }

    pub(crate) const fn gamma1(&self) -> i32 {
        1 << (self.mask_bits - 1)
    }

    /// Bytes of a polynomial of y or z.
    pub(crate) const fn mask_bytes(&self) -> usize {
        32 * self.mask_bits as usize
    }

    /// Bits of a coefficient of s1 and s2.
    pub(crate) const fn small_bits(&self) -> usize {
        if self.eta == 2 { 3 } else { 4 }
    }

    /// Bytes of a polynomial of w1.
    pub(crate) const fn high_bytes(&self) -> usize {
        32 * self.gamma2.high_bits()
    }

    /// Number of attempts at once of an operation when slots are free: measured (`docs/kernels/ml-dsa.md`).
    pub(crate) const fn attempts_ahead(&self) -> usize {
        if self.l == 4 { 2 } else { 3 }
    }

    /// Number of terms of a product with c whose sum fits a byte.
    pub(crate) const fn byte_terms(&self) -> usize {
        i8::MAX as usize / self.eta as usize
    }
}

const ML_DSA_44: Parameters =
    Parameters { k: 4, l: 4, eta: 2, tau: 39, mask_bits: 18, gamma2: Gamma2::Of88, omega: 80, challenge: 32 };

const ML_DSA_65: Parameters =
    Parameters { k: 6, l: 5, eta: 4, tau: 49, mask_bits: 20, gamma2: Gamma2::Of32, omega: 55, challenge: 48 };

const ML_DSA_87: Parameters =
    Parameters { k: 8, l: 7, eta: 2, tau: 60, mask_bits: 20, gamma2: Gamma2::Of32, omega: 75, challenge: 64 };

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 204, table 2.
    #[test]
    fn lengths_are_the_standards() {
        let lengths =
            MlDsa::ALL.map(|set| (set.private_key_bytes(), set.public_key_bytes(), set.signature_bytes()));
        assert_eq!(lengths, [(2560, 1312, 2420), (4032, 1952, 3309), (4896, 2592, 4627)]);
    }
}
