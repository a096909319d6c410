//! Nonces: a hash of the private key, the digest and random bytes. An attacker that predicts the random bytes still
//! lacks the key, and two digests never share a nonce, regardless of the random bytes.

use super::modulus::to_bytes;
use super::{P256_BYTES, P256Signature};
use boring_sys as ffi;
use zeroize::{Zeroize, Zeroizing};

/// Length of a hash in bytes; the nonce is its remainder modulo n. The length bounds the bias of nonces by a part in
/// 2^256.
pub(super) const WIDE: usize = 64;

/// Computes the hashes for nonces, one for each signature. `None` without random numbers.
pub(super) fn draw(batch: &[P256Signature<'_>]) -> Option<Zeroizing<Vec<[u8; WIDE]>>> {
    let mut random = Zeroizing::new(vec![[0; P256_BYTES]; batch.len()]);
    let bytes = random.as_flattened_mut();
    // SAFETY: the buffer has the given length.
    let drawn = unsafe { ffi::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) };
    let hashes = batch.iter().zip(random.iter()).map(|(op, random)| hash(op, random));
    (drawn == 1).then(|| Zeroizing::new(hashes.collect()))
}

/// Computes SHA-512 of key, digest and random bytes, each of 32 bytes.
fn hash(op: &P256Signature<'_>, random: &[u8; P256_BYTES]) -> [u8; WIDE] {
    let mut input = [0; 3 * P256_BYTES];
    let mut hash = [0; WIDE];
    to_bytes(&op.key.d, &mut input[..P256_BYTES]);
    input[P256_BYTES..2 * P256_BYTES].copy_from_slice(&op.digest_bytes());
    input[2 * P256_BYTES..].copy_from_slice(random);
    // SAFETY: the input has the given length, and a hash is 64 bytes long.
    unsafe { ffi::SHA512(input.as_ptr(), input.len(), hash.as_mut_ptr()) };
    input.zeroize();
    hash
}
