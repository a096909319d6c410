//! Detection of instruction sets: done once, proved by tokens, and restrictable for tests.

use std::fmt;
use std::str::FromStr;

/// Environment variable that restricts instruction sets: see [`Ceiling`].
pub const CEILING_VARIABLE: &str = "QUADRILLE_CPU";

/// Best tier that may be chosen; better tiers of a machine are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Ceiling {
    /// Scalar library only.
    Portable,
    /// AVX2 and FMA, four lanes.
    Avx2,
    /// AVX-512 IFMA, eight lanes: no restriction.
    #[default]
    Ifma,
}

/// `QUADRILLE_CPU` does not name a tier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{CEILING_VARIABLE} is {0:?}; expected one of portable, avx2, ifma")]
pub struct UnknownTier(String);

impl Ceiling {
    /// Reads the ceiling from `QUADRILLE_CPU`; the best tier if it is unset or empty.
    pub fn from_environment() -> Result<Self, UnknownTier> {
        match std::env::var_os(CEILING_VARIABLE) {
            Some(value) if !value.is_empty() => value.to_string_lossy().parse(),
            _ => Ok(Self::default()),
        }
    }
}

impl FromStr for Ceiling {
    type Err = UnknownTier;

    fn from_str(name: &str) -> Result<Self, UnknownTier> {
        match name {
            "portable" => Ok(Self::Portable),
            "avx2" => Ok(Self::Avx2),
            "ifma" => Ok(Self::Ifma),
            other => Err(UnknownTier(other.to_owned())),
        }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Ifma => "ifma",
        })
    }
}

/// Proof that this CPU has AVX2 and FMA3, and that the operating system saves their registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HaveAvx2Fma(());

#[cfg(target_arch = "x86_64")]
impl HaveAvx2Fma {
    pub(crate) fn detect() -> Option<Self> {
        let present = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        present.then_some(Self(()))
    }
}

/// Proof that this CPU has AVX-512 F and IFMA, and that the operating system saves their registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HaveIfma(());

#[cfg(target_arch = "x86_64")]
impl HaveIfma {
    pub(crate) fn detect() -> Option<Self> {
        let present = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512ifma");
        present.then_some(Self(()))
    }
}

/// Proof that this CPU has AVX-512 with byte and word instructions, and that the operating system saves their
/// registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HaveAvx512(());

#[cfg(target_arch = "x86_64")]
impl HaveAvx512 {
    pub(crate) fn detect() -> Option<Self> {
        let present = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vbmi")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt");
        present.then_some(Self(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for ceiling in [Ceiling::Portable, Ceiling::Avx2, Ceiling::Ifma] {
            assert_eq!(ceiling.to_string().parse(), Ok(ceiling));
        }
        assert!("avx512".parse::<Ceiling>().is_err());
    }
}
