//! Choice of the AES implementation: made once at run time, reported, and restrictable for tests.

use std::{fmt, sync::OnceLock};

/// Environment variable that disables the code for short fields, so that one machine tests both:
/// `QUADRILLE_CPU=portable`. Its other values, which the RSA kernels use, have no effect here.
pub const VARIABLE: &str = "QUADRILLE_CPU";

/// Implementation of AES-256-GCM. Shown as for instance `AES-NI; VAES-512 above 2048 bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Implementation {
    #[cfg(target_arch = "x86_64")]
    pub(super) short: Option<super::x86_64::HaveAesClmul>,
}

/// Length in bytes above which RustCrypto, with its wider registers, is faster.
#[cfg(target_arch = "x86_64")]
pub(super) const SHORT: usize = 2048;

impl Implementation {
    /// Returns the fastest implementation on this machine, unless [`VARIABLE`] is `portable`.
    pub fn best() -> Self {
        static BEST: OnceLock<Implementation> = OnceLock::new();
        *BEST.get_or_init(|| match std::env::var(VARIABLE) {
            Ok(value) if value == "portable" => Self::portable(),
            _ => Self::detect(),
        })
    }

    /// Returns RustCrypto for every length.
    pub fn portable() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            short: None,
        }
    }

    /// Returns the fastest implementation on this machine.
    pub fn detect() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            short: super::x86_64::HaveAesClmul::detect(),
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(target_arch = "x86_64")]
        if self.short.is_some() {
            return write!(f, "AES-NI; {} above {SHORT} bytes", rustcrypto());
        }
        f.write_str(rustcrypto())
    }
}

/// Returns the implementation chosen by the `aes` crate, by the features that it checks.
fn rustcrypto() -> &'static str {
    if cfg!(aes_backend = "soft") {
        return SOFTWARE;
    }
    #[cfg(target_arch = "x86_64")]
    {
        let has_vaes = std::is_x86_feature_detected!("vaes");
        if !std::is_x86_feature_detected!("aes") {
            SOFTWARE
        } else if has_vaes && std::is_x86_feature_detected!("avx512f") {
            "VAES-512"
        } else if has_vaes && std::is_x86_feature_detected!("avx2") {
            "VAES-256"
        } else {
            "AES-NI"
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if std::arch::is_aarch64_feature_detected!("aes") { "ARMv8 AES" } else { SOFTWARE }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    SOFTWARE
}

const SOFTWARE: &str = "software, constant time";
