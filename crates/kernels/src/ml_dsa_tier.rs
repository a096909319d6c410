//! Choice of the instruction set for ML-DSA.

use crate::cpu::Ceiling;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{HaveAvx2Fma, HaveAvx512};
use crate::ml_dsa::{Pool, Portable};
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{avx512::Avx512, ml_dsa_avx2::Avx2};

/// Tier for ML-DSA. Its instructions differ from RSA's.
#[derive(Debug)]
pub(crate) enum Tier {
    Portable(Pool<Portable>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Pool<Avx2>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Pool<Avx512>),
}

impl Tier {
    pub(crate) fn up_to(ceiling: Ceiling) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if ceiling >= Ceiling::Ifma
                && let Some(proof) = HaveAvx512::detect()
            {
                return Self::Avx512(Pool::new(Avx512::new(proof)));
            }
            if ceiling >= Ceiling::Avx2
                && let Some(proof) = HaveAvx2Fma::detect()
            {
                return Self::Avx2(Pool::new(Avx2::new(proof)));
            }
        }
        let _ = ceiling;
        Self::Portable(Pool::new(Portable))
    }
}
