//! Parameter sets, with the lengths of `struct MlDsa` in kernel/ml_dsa.cuh.

use std::ffi::CStr;

/// Parameter set of ML-DSA (FIPS 204, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlDsaSet {
    /// ML-DSA-44.
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
}

/// Coefficients of a polynomial.
pub(super) const N: usize = 256;
/// Words of an input: mu and rho'.
pub(super) const INPUT_WORDS: usize = 32;
/// Attempts whose masks and challenges a warp computes together.
const AHEAD: usize = 4;

impl MlDsaSet {
    /// All parameter sets.
    pub const ALL: [Self; 3] = [Self::MlDsa44, Self::MlDsa65, Self::MlDsa87];

    /// Rows and columns of the matrix A.
    pub const fn dimensions(self) -> (usize, usize) {
        match self {
            Self::MlDsa44 => (4, 4),
            Self::MlDsa65 => (6, 5),
            Self::MlDsa87 => (8, 7),
        }
    }

    /// Bytes of a signature.
    pub const fn signature_bytes(self) -> usize {
        let (k, _) = self.dimensions();
        4 * (self.hash_words() + self.response_words()) + self.hints() + k
    }

    /// Greatest number of hints: omega.
    pub(super) const fn hints(self) -> usize {
        match self {
            Self::MlDsa44 => 80,
            Self::MlDsa65 => 55,
            Self::MlDsa87 => 75,
        }
    }

    pub(super) const fn hash_words(self) -> usize {
        match self {
            Self::MlDsa44 => 8,
            Self::MlDsa65 => 12,
            Self::MlDsa87 => 16,
        }
    }

    /// Words of z, packed.
    pub(super) const fn response_words(self) -> usize {
        let (_, l) = self.dimensions();
        l * N / 32 * if l == 4 { 18 } else { 20 }
    }

    pub(super) const fn output_words(self) -> usize {
        let (k, _) = self.dimensions();
        self.hash_words() + self.response_words() + k * N / 32
    }

    pub(super) const fn key_words(self) -> usize {
        let (k, l) = self.dimensions();
        N * (k * l + l + 2 * k)
    }

    pub(super) const fn table_words(self) -> usize {
        let (k, _) = self.dimensions();
        let high_words = N / 32 * if k == 4 { 6 } else { 4 };
        AHEAD * (k * N + 16 + k * high_words)
    }

    /// Entry point in kernel/ml_dsa.cu.
    pub(super) const fn kernel(self) -> &'static CStr {
        match self {
            Self::MlDsa44 => c"quadrille_ml_dsa44",
            Self::MlDsa65 => c"quadrille_ml_dsa65",
            Self::MlDsa87 => c"quadrille_ml_dsa87",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 204, table 2.
    #[test]
    fn signatures_have_the_standards_lengths() {
        assert_eq!(MlDsaSet::ALL.map(MlDsaSet::signature_bytes), [2420, 3309, 4627]);
    }
}
