//! Blind indexes: a keyed hash of the plaintext, for finding rows without decrypting them.
//!
//! HMAC-SHA256 under a key of the table and column, truncated. Equal plaintexts have equal indexes: a reader of the
//! table learns which rows share a value, and how often. Fewer bits hide more and match more unrelated rows, which
//! the caller filters out after decryption.

use crate::Error;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::ops::RangeInclusive;

/// Valid lengths of a blind index, in steps of 8.
pub const BLIND_INDEX_BITS: RangeInclusive<u32> = 8..=256;

/// Index key of one column.
pub(crate) struct IndexKey(Hmac<Sha256>);

impl IndexKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC accepts keys of any length"))
    }

    /// Returns the first `bits` of the hash, in hexadecimal.
    pub(crate) fn index(&self, plain: &[u8], bits: u32) -> Result<String, Error> {
        if !BLIND_INDEX_BITS.contains(&bits) || !bits.is_multiple_of(8) {
            return Err(Error::Bits);
        }
        let hash = self.0.clone().chain_update(plain).finalize().into_bytes();
        let bytes = &hash[..(bits / 8) as usize];
        Ok(base16ct::lower::encode_string(bytes))
    }
}
