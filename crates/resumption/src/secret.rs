//! The fleet secret, which every gateway of a fleet has and Redis does not.

use boring::{hash::MessageDigest, hkdf::HkdfSuite, symm::Cipher};
use std::fmt;
use zeroize::Zeroizing;

/// The root key for all data that leaves the process (AES-256-GCM under keys derived by HKDF-SHA256, RFC 5869).
#[derive(Clone)]
pub struct FleetSecret {
    root: Zeroizing<[u8; 32]>,
    namespace: String,
}

/// Reason that bytes are not a fleet secret. Does not reveal their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// There are too few bytes to be unguessable.
    #[error(
        "holds {0} bytes; a fleet secret has at least 32 random bytes: make one with `quadrille tickets generate FILE`, and use the same file on all gateways"
    )]
    Short(usize),
}

const SHORTEST: usize = 32;
const NONCE: usize = 12;
const TAG: usize = 16;

impl FleetSecret {
    /// Parses a secret file. Trailing white space is ignored: tools add and remove it.
    ///
    /// # Errors
    /// If there are fewer than 32 bytes.
    ///
    /// # Panics
    /// Never: HKDF-SHA256 accepts any input.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretError> {
        let bytes = bytes.trim_ascii_end();
        if bytes.len() < SHORTEST {
            return Err(SecretError::Short(bytes.len()));
        }
        let mut root = Zeroizing::new([0; 32]);
        let extracted = hkdf().extract(b"quadrille fleet 1", bytes).expect("HKDF-Extract takes any input");
        root.copy_from_slice(&extracted);
        let mut this = Self { root, namespace: String::new() };
        let derived = this.derive(b"namespace");
        this.namespace = derived[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(this)
    }

    /// Returns the namespace, which distinguishes fleets that share one Redis: all keys of this fleet begin with it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Derives a key for another purpose that all gateways of the fleet share.
    #[must_use]
    pub fn key_for(&self, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
        self.derive(&[b"key for ", purpose].concat())
    }

    /// Seals content for this fleet and this purpose.
    pub(crate) fn seal(&self, purpose: &[u8], content: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE];
        boring::rand::rand_bytes(&mut nonce).ok()?;
        let (key, mut tag) = (self.derive(purpose), [0; TAG]);
        let sealed =
            boring::symm::encrypt_aead(Cipher::aes_256_gcm(), &*key, Some(&nonce), &[], content, &mut tag);
        Some([&nonce[..], &sealed.ok()?, &tag].concat())
    }

    /// Opens content that was sealed for `purpose`; `None` if it is not authentic.
    pub(crate) fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, rest) = sealed.split_at_checked(NONCE)?;
        let (content, tag) = rest.split_at_checked(rest.len().checked_sub(TAG)?)?;
        let key = self.derive(purpose);
        let opened = boring::symm::decrypt_aead(Cipher::aes_256_gcm(), &*key, Some(nonce), &[], content, tag);
        if opened.is_err() {
            // BoringSSL's error queue is per thread; a later operation would find this error there.
            drop(boring::error::ErrorStack::get());
        }
        opened.ok().map(Zeroizing::new)
    }

    /// Derives a key for each purpose, so that purposes share no nonces and content cannot be passed off for another
    /// purpose.
    fn derive(&self, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        hkdf().expand(&*self.root, purpose, &mut *key).expect("HKDF-Expand gives 32 bytes");
        key
    }
}

fn hkdf() -> HkdfSuite {
    HkdfSuite::new(MessageDigest::sha256())
}

/// Shows the namespace, never the secret.
impl fmt::Debug for FleetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FleetSecret(of fleet {})", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> FleetSecret {
        FleetSecret::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_for_the_same_purpose_and_fleet_only() {
        let sealed = secret(1).seal(b"a", b"content").unwrap();
        assert_eq!(**secret(1).open(b"a", &sealed).unwrap(), *b"content");
        assert!(secret(1).open(b"b", &sealed).is_none());
        assert!(secret(2).open(b"a", &sealed).is_none());
        assert_ne!(secret(1).seal(b"a", b"content").unwrap(), sealed, "a nonce of its own");
    }

    #[test]
    fn every_changed_bit_and_every_truncation_is_noticed() {
        let sealed = secret(1).seal(b"a", b"content").unwrap();
        for index in 0..sealed.len() {
            assert!(secret(1).open(b"a", &sealed[..index]).is_none(), "cut at {index}");
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(secret(1).open(b"a", &changed).is_none(), "changed at {index}");
        }
    }

    #[test]
    fn a_newline_at_the_end_does_not_make_another_fleet() {
        let text = [b'x'; 44];
        let line = [&text[..], b"\n"].concat();
        assert_eq!(
            FleetSecret::new(&text).unwrap().namespace(),
            FleetSecret::new(&line).unwrap().namespace()
        );
        assert_ne!(secret(1).namespace(), secret(2).namespace());
    }

    #[test]
    fn a_short_secret_is_refused_and_never_shown() {
        assert_eq!(FleetSecret::new(&[7; 31]).unwrap_err(), SecretError::Short(31));
        assert!(!format!("{:?}", secret(b'k')).contains("kkk"));
    }
}
