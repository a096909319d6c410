//! Blind indexes: a keyed hash of the plaintext, by which rows are found without decrypting them.
//!
//! HMAC-SHA256 under a key of the table and column, cut to some bits. Equal plaintexts have equal indexes: whoever
//! reads the table sees which rows share a value, and how often. Fewer bits hide more and find more rows that do not
//! match, which the caller sorts out after decrypting.

use crate::Error;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::ops::RangeInclusive;

/// The lengths that a blind index may have, in steps of 8.
pub const BLIND_INDEX_BITS: RangeInclusive<u32> = 8..=256;

/// The index key of one column.
pub(crate) struct IndexKey(Hmac<Sha256>);

impl IndexKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of every length"))
    }

    /// The first `bits` of the hash, in hexadecimal.
    pub(crate) fn index(&self, plain: &[u8], bits: u32) -> Result<String, Error> {
        if !BLIND_INDEX_BITS.contains(&bits) || !bits.is_multiple_of(8) {
            return Err(Error::Bits);
        }
        let hash = self.0.clone().chain_update(plain).finalize().into_bytes();
        let bytes = &hash[..(bits / 8) as usize];
        Ok(base16ct::lower::encode_string(bytes))
    }
}
