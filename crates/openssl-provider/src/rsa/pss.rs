//! EMSA-PSS (RFC 8017 section 9.1), for every digest and every salt. BoringSSL's encoding lacks some digests.

use super::encryption::mask;
use crate::{
    digest::Digest,
    error::{Failure, Reason},
};
use boring::rand::rand_bytes;
use zeroize::Zeroizing;

/// Digests of an encoding.
#[derive(Clone, Copy)]
pub(super) struct Hashes {
    pub(super) message: Digest,
    pub(super) mgf1: Digest,
}

/// Encodes a digest, as long as the modulus of `bits`.
pub(super) fn encode(
    bits: usize,
    hashes: Hashes,
    salt: usize,
    digest: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let size = hashes.message.size();
    let longest = max_salt(bits, hashes.message).filter(|longest| salt <= *longest);
    let fill = longest.ok_or_else(no_room)? - salt;
    let mut random = vec![0; salt];
    rand_bytes(&mut random)?;
    let hash = salted(hashes.message, digest, &random)?;
    let mut encoded = Zeroizing::new(vec![0; bits.div_ceil(8)]);
    let start = encoded.len() - encoded_length(bits);
    let (data, end) = encoded[start..].split_at_mut(fill + 1 + salt);
    data[fill] = 1;
    data[fill + 1..].copy_from_slice(&random);
    mask(hashes.mgf1, &hash, data)?;
    data[0] &= first_byte(bits);
    end[..size].copy_from_slice(&hash);
    end[size] = TRAILER;
    Ok(encoded)
}

/// Returns whether `raised`, as long as the modulus, encodes the digest. Without `salt`, any length is valid.
pub(super) fn verify(
    bits: usize,
    hashes: Hashes,
    salt: Option<usize>,
    digest: &[u8],
    raised: &[u8],
) -> Result<bool, Failure> {
    let size = hashes.message.size();
    let (Some(longest), Some(start)) =
        (max_salt(bits, hashes.message), raised.len().checked_sub(encoded_length(bits)))
    else {
        return Ok(false);
    };
    let (above, encoded) = raised.split_at(start);
    let (masked, end) = encoded.split_at(longest + 1);
    let is_framed = above.iter().all(|byte| *byte == 0) && end[size] == TRAILER;
    if !is_framed || masked[0] & !first_byte(bits) != 0 || digest.len() != size {
        return Ok(false);
    }
    let mut data = masked.to_vec();
    mask(hashes.mgf1, &end[..size], &mut data)?;
    data[0] &= first_byte(bits);
    let Some(one) = data.iter().position(|byte| *byte != 0).filter(|one| data[*one] == 1) else {
        return Ok(false);
    };
    let found = &data[one + 1..];
    let is_expected = salt.is_none_or(|salt| salt == found.len());
    Ok(is_expected && salted(hashes.message, digest, found)? == end[..size])
}

/// Returns emLen - hLen - 2, the maximum length of a salt; `None` if the modulus has no room for the digest.
pub(super) fn max_salt(bits: usize, digest: Digest) -> Option<usize> {
    encoded_length(bits).checked_sub(digest.size() + 2)
}

/// Returns emLen.
fn encoded_length(bits: usize) -> usize {
    bits.saturating_sub(1).div_ceil(8)
}

/// Returns the mask of the bits that the first byte may have.
fn first_byte(bits: usize) -> u8 {
    0xff >> (8 * encoded_length(bits) - bits.saturating_sub(1))
}

/// Computes H, the digest of `00 00 00 00 00 00 00 00 digest salt`.
fn salted(algorithm: Digest, digest: &[u8], salt: &[u8]) -> Result<Vec<u8>, Failure> {
    algorithm.one_shot(&[&[0; 8], digest, salt].concat())
}

fn no_room() -> Failure {
    Failure::new(Reason::WrongInput, "the key is too short for this digest and padding")
}

const TRAILER: u8 = 0xbc;

#[cfg(test)]
mod tests {
    use super::{Hashes, encode, max_salt, verify};
    use crate::digest::Digest;

    #[test]
    fn what_is_encoded_is_verified_at_every_length_of_modulus_and_salt() {
        for bits in [1024, 1025, 1026, 1031, 1032, 2048] {
            let hashes = Hashes { message: Digest::Sha3_256, mgf1: Digest::Ripemd160 };
            let digest = Digest::Sha3_256.one_shot(b"message").unwrap();
            let longest = max_salt(bits, hashes.message).unwrap();
            for salt in [0, 1, 32, longest] {
                let encoded = encode(bits, hashes, salt, &digest).unwrap();
                assert_eq!(encoded.len(), bits.div_ceil(8));
                let is_valid = |salt, digest: &[u8]| verify(bits, hashes, salt, digest, &encoded).unwrap();
                assert!(is_valid(Some(salt), &digest) && is_valid(None, &digest), "{bits} {salt}");
                assert!(!is_valid(Some(salt + 1), &digest), "{bits} {salt}");
                assert!(!is_valid(None, &[7; 32]), "{bits} {salt}");
                for at in [0, bits / 16, encoded.len() - 1] {
                    let mut wrong = encoded.to_vec();
                    wrong[at] ^= 0x80;
                    assert!(!verify(bits, hashes, None, &digest, &wrong).unwrap(), "{bits} {salt} {at}");
                }
            }
            assert!(encode(bits, hashes, longest + 1, &digest).is_err());
        }
    }
}
