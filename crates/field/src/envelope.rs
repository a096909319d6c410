//! The bytes that lie in the database.
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
//! AES-GCM does not commit to its key: somebody who chooses keys can make an envelope that opens under two of them.
//! The commitment is compared before anything is decrypted. It is the same in all envelopes of one column and key, so
//! comparing it is all that it costs; what it tells, the column's name tells too.
//!
//! The version and the key id are not part of the associated data: a changed version is refused, and a changed id
//! leads to another key, whose commitment differs.

use crate::xaes::{NONCE_BYTES, TAG_BYTES};

/// The version of envelopes that are written.
pub const VERSION: u8 = 1;
/// Bytes of a key's id.
pub const ID_BYTES: usize = 4;
/// Bytes of the commitment.
pub const COMMITMENT_BYTES: usize = 32;
/// What stands in front of the ciphertext.
pub const HEADER_BYTES: usize = 1 + ID_BYTES + COMMITMENT_BYTES + NONCE_BYTES;
/// By how much an envelope is longer than its plaintext.
pub const OVERHEAD: usize = HEADER_BYTES + TAG_BYTES;

/// An envelope's parts; borrowed, not yet believed.
pub(crate) struct Parts<'a> {
    pub(crate) id: &'a [u8; ID_BYTES],
    pub(crate) commitment: &'a [u8; COMMITMENT_BYTES],
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    pub(crate) ciphertext: &'a [u8],
    pub(crate) tag: &'a [u8; TAG_BYTES],
}

/// Takes an envelope apart; `None` if it is too short or of another version.
pub(crate) fn parse(envelope: &[u8]) -> Option<Parts<'_>> {
    let (&[version], rest) = envelope.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (commitment, rest) = rest.split_first_chunk()?;
    let (nonce, rest) = rest.split_first_chunk()?;
    let (ciphertext, tag) = rest.split_last_chunk()?;
    (version == VERSION).then_some(Parts { id, commitment, nonce, ciphertext, tag })
}

/// The places for an envelope's parts.
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
    const FITS: &str = "an envelope's buffer has room for what surrounds the ciphertext";
    let (version, rest) = envelope.split_first_mut().expect(FITS);
    let (id, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (commitment, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (nonce, rest) = rest.split_first_chunk_mut().expect(FITS);
    let (ciphertext, tag) = rest.split_last_chunk_mut().expect(FITS);
    PartsMut { version, id, commitment, nonce, ciphertext, tag }
}
