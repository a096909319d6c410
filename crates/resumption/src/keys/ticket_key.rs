//! A key for session tickets, in the format that RFC 5077 section 4 recommends and nginx reads.

use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// A ticket key: a public name, and secrets for AES-CBC and HMAC-SHA256. Zeroised on drop.
///
/// Its file, as nginx's `ssl_session_ticket_key` defines it, has exactly 80 bytes (name 16, HMAC 32, AES-256 32) or
/// 48 bytes (name 16, AES-128 16, HMAC 16).
#[derive(Clone)]
pub struct TicketKey {
    name: [u8; NAME],
    /// AES key, followed by the HMAC key; both of `half` bytes.
    secrets: Zeroizing<[u8; 64]>,
    half: usize,
}

const NAME: usize = 16;

/// Reason that bytes are not a ticket key. Does not reveal their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The length is wrong. A trailing newline counts: it is one byte too many.
    #[error(
        "holds {0} bytes; a ticket key has 80 (or 48): make one with `quadrille tickets generate FILE`, or `openssl rand -out FILE 80`"
    )]
    Length(usize),
}

impl TicketKey {
    /// Length in bytes of a key with AES-256.
    pub const LENGTH: usize = 80;
    /// Length in bytes of a key with AES-128.
    pub const SHORT_LENGTH: usize = 48;

    /// Generates a random key.
    ///
    /// # Panics
    /// If the system has no randomness, in which case BoringSSL itself aborts the process.
    pub fn random() -> Self {
        let mut bytes = Zeroizing::new([0; Self::LENGTH]);
        boring::rand::rand_bytes(&mut *bytes).expect("BoringSSL's randomness cannot fail");
        Self::long(&bytes)
    }

    /// Parses a key file.
    ///
    /// # Errors
    /// If there are not 48 or 80 bytes.
    pub fn from_file_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        if let Ok(long) = bytes.try_into() {
            return Ok(Self::long(long));
        }
        let Ok(short): Result<&[u8; Self::SHORT_LENGTH], _> = bytes.try_into() else {
            return Err(KeyError::Length(bytes.len()));
        };
        let mut key = Self { name: [0; NAME], secrets: Zeroizing::new([0; 64]), half: 16 };
        key.name.copy_from_slice(&short[..16]);
        key.secrets[..32].copy_from_slice(&short[16..]);
        Ok(key)
    }

    /// Returns the content of the key file: 48 or 80 bytes.
    pub fn to_file_bytes(&self) -> Zeroizing<Vec<u8>> {
        let parts = if self.half == 32 { [self.hmac(), self.aes()] } else { [self.aes(), self.hmac()] };
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::LENGTH));
        bytes.extend_from_slice(&self.name);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }

    /// Returns the key name, sent in the clear at the start of every ticket.
    pub fn name(&self) -> &[u8; NAME] {
        &self.name
    }

    /// Returns the AES-CBC key: 16 or 32 bytes.
    pub fn aes(&self) -> &[u8] {
        &self.secrets[..self.half]
    }

    /// Returns the HMAC-SHA256 key: 16 or 32 bytes.
    pub fn hmac(&self) -> &[u8] {
        &self.secrets[self.half..2 * self.half]
    }

    fn long(bytes: &[u8; Self::LENGTH]) -> Self {
        let mut key = Self { name: [0; NAME], secrets: Zeroizing::new([0; 64]), half: 32 };
        key.name.copy_from_slice(&bytes[..16]);
        key.secrets[32..].copy_from_slice(&bytes[16..48]);
        key.secrets[..32].copy_from_slice(&bytes[48..]);
        key
    }
}

/// Shows the name only, which is public.
impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKey({self})")
    }
}

/// Shows the name in hexadecimal.
impl fmt::Display for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Drop for TicketKey {
    fn drop(&mut self) {
        self.name.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(length: u8) -> Vec<u8> {
        (0..length).collect()
    }

    #[test]
    fn a_long_key_is_laid_out_as_nginx_does() {
        let key = TicketKey::from_file_bytes(&counting(80)).unwrap();
        assert_eq!(key.name(), &counting(16)[..]);
        assert_eq!(key.hmac(), &counting(80)[16..48]);
        assert_eq!(key.aes(), &counting(80)[48..]);
        assert_eq!(*key.to_file_bytes(), counting(80));
    }

    #[test]
    fn a_short_key_is_laid_out_as_nginx_does() {
        let key = TicketKey::from_file_bytes(&counting(48)).unwrap();
        assert_eq!(key.name(), &counting(16)[..]);
        assert_eq!(key.aes(), &counting(48)[16..32]);
        assert_eq!(key.hmac(), &counting(48)[32..]);
        assert_eq!(*key.to_file_bytes(), counting(48));
    }

    #[test]
    fn other_lengths_are_refused_by_name() {
        for length in [0, 1, 47, 49, 79, 81, 200] {
            let error = TicketKey::from_file_bytes(&counting(length)).unwrap_err();
            assert!(error.to_string().contains(&format!("holds {length} bytes")), "{error}");
        }
    }

    #[test]
    fn random_keys_differ_and_show_only_their_name() {
        let (one, other) = (TicketKey::random(), TicketKey::random());
        assert_ne!(one.name(), other.name());
        assert_ne!(one.aes(), other.aes());
        assert_eq!(format!("{one:?}").len(), "TicketKey()".len() + 32);
    }
}
