//! RSA private keys, parsed and checked once so that every later operation can be fast.

use std::fmt;
use std::sync::OnceLock;

use crate::batch::KeyConstants;
use crate::portable::ScalarKey;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{fma47::Fma47, ifma::Ifma};
use quadrille_rsa_numbers::{Components, KeyError, KeySize, Modulus, Numbers, RsaKey};

/// RSA private key for [`Lanes`](crate::Lanes). Prepare it once and share it; its secrets are cleared from memory on
/// drop.
pub struct PrivateKey {
    pub(crate) numbers: Numbers,
    pub(crate) scalar: ScalarKey,
    #[cfg(target_arch = "x86_64")]
    pub(crate) ifma: OnceLock<KeyConstants<Ifma>>,
    #[cfg(target_arch = "x86_64")]
    pub(crate) fma47: OnceLock<KeyConstants<Fma47>>,
}

impl PrivateKey {
    /// Checks that the numbers form an RSA key (any odd e from 3 to n) of a size that lanes support.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        Ok(Self {
            numbers: Numbers::new(components)?,
            scalar: ScalarKey::new(components)?,
            #[cfg(target_arch = "x86_64")]
            ifma: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            fma47: OnceLock::new(),
        })
    }

    /// Size of the modulus.
    pub fn size(&self) -> KeySize {
        self.numbers.size
    }
}

impl RsaKey for PrivateKey {
    fn modulus(&self) -> Modulus<'_> {
        Modulus { size: self.numbers.size, n: &self.numbers.n }
    }
}

impl fmt::Debug for PrivateKey {
    /// Shows the size, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("size", &self.size()).finish_non_exhaustive()
    }
}
