//! Which AES does the work: chosen once when the program runs, reported, and deniable for tests.

use std::{fmt, sync::OnceLock};

/// The environment variable that denies the code for short fields, so that one machine tests both:
/// `QUADRILLE_CPU=portable`. Its other values, which the RSA kernels know, deny nothing here.
pub const VARIABLE: &str = "QUADRILLE_CPU";

/// How AES-256-GCM is computed. Shown as for instance `AES-NI; VAES-512 above 2048 bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Implementation {
    #[cfg(target_arch = "x86_64")]
    pub(super) short: Option<super::x86_64::HaveAesClmul>,
}

/// Bytes above which RustCrypto, with its wider registers, is the faster one.
#[cfg(target_arch = "x86_64")]
pub(super) const SHORT: usize = 2048;

impl Implementation {
    /// The fastest that this machine has, unless [`VARIABLE`] says `portable`.
    pub fn best() -> Self {
        static BEST: OnceLock<Implementation> = OnceLock::new();
        *BEST.get_or_init(|| match std::env::var(VARIABLE) {
            Ok(value) if value == "portable" => Self::portable(),
            _ => Self::detect(),
        })
    }

    /// RustCrypto for every length.
    pub fn portable() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            short: None,
        }
    }

    /// The fastest that this machine has.
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

/// What the `aes` crate finds, by the features that it asks for.
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
