//! XAES-256-GCM: AES-256-GCM with nonces long enough to be drawn at random without limit.
//!
//! The AES-GCM key of each message is derived from the key and the first half of its nonce (NIST SP 800-108r1 with
//! CMAC); the second half is AES-GCM's nonce. Specification: <https://c2sp.org/XAES-256-GCM>.

mod implementation;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use implementation::{Implementation, VARIABLE};

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;
/// Length of a nonce in bytes.
pub const NONCE_BYTES: usize = 24;
/// Length of a tag in bytes.
pub const TAG_BYTES: usize = 16;

/// Key, expanded once for all messages under it; erased on drop.
pub struct Xaes256Gcm {
    portable: portable::Root,
    /// Implementation for texts of up to [`implementation::SHORT`] bytes.
    #[cfg(target_arch = "x86_64")]
    short: Option<x86_64::Root>,
}

impl Xaes256Gcm {
    /// Expands a key for the fastest implementation on this machine.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self::with(key, Implementation::best())
    }

    /// Expands a key for one implementation: all give the same results.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is one implementation"))]
    pub fn with(key: &[u8; KEY_BYTES], implementation: Implementation) -> Self {
        let portable = portable::Root::new(key);
        Self {
            #[cfg(target_arch = "x86_64")]
            short: implementation.short.map(|token| x86_64::Root::new(token, key, portable.k1())),
            portable,
        }
    }

    /// Encrypts `text` in place and returns its tag. A nonce must not be used twice under one key.
    pub fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        #[cfg(target_arch = "x86_64")]
        if let Some(short) = &self.short
            && text.len() <= implementation::SHORT
        {
            return short.seal(nonce, aad, text);
        }
        self.portable.seal(nonce, aad, text)
    }

    /// Decrypts `text` in place if `tag` is valid for it, the nonce and `aad`; otherwise leaves it unchanged and
    /// returns false. Tags are compared in constant time.
    #[must_use]
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if let Some(short) = &self.short
            && text.len() <= implementation::SHORT
        {
            return short.open(nonce, aad, text, tag);
        }
        self.portable.open(nonce, aad, text, tag)
    }
}
