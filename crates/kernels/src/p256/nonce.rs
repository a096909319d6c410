//! Nonces: a hash of the private key, the digest and random bytes. Whoever predicts the random bytes still lacks the key,
//! and the same nonce never serves two digests, whatever the random bytes are.

use super::modulus::to_bytes;
use super::{P256_BYTES, P256Signature};
use boring_sys as ffi;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a hash, of which the nonce is the rest modulo n: so many that no nonce is more probable than others by a part
/// in 2^256.
pub(super) const WIDE: usize = 64;

/// Hashes that become nonces, one for each signature. `None` without random numbers.
pub(super) fn draw(batch: &[P256Signature<'_>]) -> Option<Zeroizing<Vec<[u8; WIDE]>>> {
    let mut random = Zeroizing::new(vec![[0; P256_BYTES]; batch.len()]);
    let bytes = random.as_flattened_mut();
    // SAFETY: the buffer is as long as is passed.
    let drawn = unsafe { ffi::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) };
    let hashes = batch.iter().zip(random.iter()).map(|(op, random)| hash(op, random));
    (drawn == 1).then(|| Zeroizing::new(hashes.collect()))
}

/// SHA-512 of key, digest and random bytes, each of 32 bytes.
fn hash(op: &P256Signature<'_>, random: &[u8; P256_BYTES]) -> [u8; WIDE] {
    let mut input = [0; 3 * P256_BYTES];
    let mut hash = [0; WIDE];
    to_bytes(&op.key.d, &mut input[..P256_BYTES]);
    input[P256_BYTES..2 * P256_BYTES].copy_from_slice(&op.digest_bytes());
    input[2 * P256_BYTES..].copy_from_slice(random);
    // SAFETY: the input is as long as is passed, and a hash is 64 bytes long.
    unsafe { ffi::SHA512(input.as_ptr(), input.len(), hash.as_mut_ptr()) };
    input.zeroize();
    hash
}
