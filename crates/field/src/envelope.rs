//! Format of encrypted fields in the database.
//!
//! | bytes | part |
//! |---|---|
//! | 1 | version, [`VERSION`] |
//! | 4 | id of the key |
//! | 32 | commitment to the key: HKDF's second block for this key, table and column |
//! | 24 | nonce, drawn at random |
//! | n | ciphertext, as long as the plaintext |
//! | 16 | tag |
//!
//! AES-GCM does not commit to its key: an attacker that chooses keys can make an envelope that opens under two of
//! them. The commitment is compared before decryption. It is the same in all envelopes of one column and key, so it
//! costs only a comparison, and reveals no more than the column's name.
//!
//! The version and the key id are not part of the associated data: a changed version is rejected, and a changed id
//! selects another key with a different commitment.

use crate::xaes::{NONCE_BYTES, TAG_BYTES};

/// Version of new envelopes.
pub const VERSION: u8 = 1;
/// Length of a key id in bytes.
pub const ID_BYTES: usize = 4;
/// Length of the commitment in bytes.
pub const COMMITMENT_BYTES: usize = 32;
/// Length of the part before the ciphertext.
pub const HEADER_BYTES: usize = 1 + ID_BYTES + COMMITMENT_BYTES + NONCE_BYTES;
/// Difference between the lengths of an envelope and its plaintext.
pub const OVERHEAD: usize = HEADER_BYTES + TAG_BYTES;

/// Parts of an envelope; borrowed, not authenticated yet.
pub(crate) struct Parts<'a> {
    pub(crate) id: &'a [u8; ID_BYTES],
    pub(crate) commitment: &'a [u8; COMMITMENT_BYTES],
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    pub(crate) ciphertext: &'a [u8],
    pub(crate) tag: &'a [u8; TAG_BYTES],
}

/// Parses an envelope; `None` if it is too short or has another version.
pub(crate) fn parse(envelope: &[u8]) -> Option<Parts<'_>> {
    let (&[version], rest) = envelope.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (commitment, rest) = rest.split_first_chunk()?;
    let (nonce, rest) = rest.split_first_chunk()?;
    let (ciphertext, tag) = rest.split_last_chunk()?;
    (version == VERSION).then_some(Parts { id, commitment, nonce, ciphertext, tag })
}

/// Mutable parts of an envelope.
pub(crate) struct PartsMut<'a> {
    pub(crate) version: &'a mut u8,
    pub(crate) id: &'a mut [u8; ID_BYTES],
    pub(crate) commitment: &'a mut [u8; COMMITMENT_BYTES],
    pub(crate) nonce: &'a mut [u8; NONCE_BYTES],
    pub(crate) ciphertext: &'a mut [u8],
    pub(crate) tag: &'a mut [u8; TAG_BYTES],
}

/// Divides a buffer of at least [`OVERHEAD`] bytes into an envelope's parts.
pub(crate) fn parse_mut(envelope: &mut [u8]) -> PartsMut<'_> {
    const FITS: &str = "an envelope's buffer has room for header and tag";
    let (version, rest) = envelope.split_first_mut().expect(FITS);
    let (id, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (commitment, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (nonce, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (ciphertext, tag) = rest.split_last_chunk_mut().expect(FITS);
    PartsMut { version, id, commitment, nonce, ciphertext, tag }
}
