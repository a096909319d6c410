//! Decryption paddings, removed in constant time: neither time nor the result may reveal whether the padding of an
//! attacker's ciphertext was valid (Bleichenbacher 1998, Manger 2001).

use super::encryption::mask;
use crate::{
    digest::Digest,
    error::{Failure, Reason},
};
use boring::{hash::hmac_sha256, rand::rand_bytes};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};
use zeroize::Zeroizing;

/// Length of the TLS premaster secret (RFC 5246 section 7.4.7.1).
pub(crate) const PREMASTER: usize = 48;

/// Returns the premaster secret, or a random one if the padding or the version in it is wrong. `versions` are the
/// valid versions at its start.
pub(crate) fn tls(padded: &[u8], versions: &[u16]) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let start = padded.len().checked_sub(PREMASTER).filter(|start| *start >= 11).ok_or_else(too_short)?;
    let mut good = padded[0].ct_eq(&0) & padded[1].ct_eq(&2) & padded[start - 1].ct_eq(&0);
    for byte in &padded[2..start - 1] {
        good &= !byte.ct_eq(&0);
    }
    let secret = &padded[start..];
    let version = u16::from_be_bytes([secret[0], secret[1]]);
    good &= versions.iter().fold(Choice::from(0), |any, known| any | version.ct_eq(known));
    let mut random = Zeroizing::new(vec![0; PREMASTER]);
    rand_bytes(&mut random)?;
    let chosen = random.iter().zip(secret).map(|(random, byte)| u8::conditional_select(random, byte, good));
    Ok(Zeroizing::new(chosen.collect()))
}

/// Removes EME-PKCS1-v1_5 padding. If it is wrong, returns a message derived from `secret` and the ciphertext: always
/// the same for the same ciphertext, so that the caller learns nothing ("implicit rejection", as in OpenSSL 3.2).
pub(crate) fn pkcs1(
    padded: &[u8],
    ciphertext: &[u8],
    secret: &[u8; 32],
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let size = padded.len();
    if size < 11 {
        return Err(too_short());
    }
    let mut found = Choice::from(0);
    let mut start = 0_u32;
    for (index, byte) in (0_u32..).zip(padded).skip(2) {
        let first = byte.ct_eq(&0) & !found;
        start.conditional_assign(&(index + 1), first);
        found |= first;
    }
    let good = padded[0].ct_eq(&0) & padded[1].ct_eq(&2) & found & start.ct_gt(&10);
    let (other, other_start) = rejected(ciphertext, secret, size)?;
    start.conditional_assign(&other_start, !good);
    let chosen = other.iter().zip(padded).map(|(other, byte)| u8::conditional_select(other, byte, good));
    Ok(tail(&Zeroizing::new(chosen.collect::<Vec<u8>>()), start))
}

/// Returns the number from which a key derives its secret of implicit rejection: below its modulus of `size` bytes,
/// and other for every key.
pub(crate) fn fixed_number(public: &[u8], size: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let seed = boring::sha::sha256(public);
    let mut number = expand(&seed, b"quadrille implicit rejection", size)?;
    // Below every modulus of this length.
    *number.first_mut().ok_or_else(too_short)? = 0;
    Ok(number)
}

/// Removes EME-OAEP padding.
///
/// # Errors
/// The same error for every kind of invalid padding.
pub(crate) fn oaep(
    padded: &[u8],
    digest: Digest,
    mgf1: Digest,
    label: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let hash = digest.size();
    if padded.len() < 2 * hash + 2 {
        return Err(too_short());
    }
    let mut padded = Zeroizing::new(padded.to_vec());
    let mut good = padded[0].ct_eq(&0);
    let (seed, data) = padded[1..].split_at_mut(hash);
    mask(mgf1, data, seed)?;
    mask(mgf1, seed, data)?;
    good &= data[..hash].ct_eq(&digest.one_shot(label)?);
    let mut found = Choice::from(0);
    let mut start = 0_u32;
    for (index, byte) in (0_u32..).zip(&*data).skip(hash) {
        let one = byte.ct_eq(&1) & !found;
        good &= found | one | byte.ct_eq(&0);
        start.conditional_assign(&(index + 1), one);
        found |= one;
    }
    good &= found;
    if bool::from(good) {
        Ok(tail(data, start))
    } else {
        Err(Failure::new(Reason::WrongInput, "decryption failed"))
    }
}

/// Returns a pseudorandom message, right-aligned, and the index of its first byte.
fn rejected(ciphertext: &[u8], secret: &[u8; 32], size: usize) -> Result<(Zeroizing<Vec<u8>>, u32), Failure> {
    let derived = Zeroizing::new(hmac_sha256(secret, ciphertext)?);
    let message = expand(&derived, b"message", size)?;
    let lengths = expand(&derived, b"length", 256)?;
    let longest = u32::try_from(size - 11).map_err(|_| too_short())?;
    let bits = u32::MAX >> longest.leading_zeros();
    let mut length = 0_u32;
    for pair in lengths.as_chunks::<2>().0 {
        let candidate = u32::from(u16::from_be_bytes(*pair)) & bits;
        length.conditional_assign(&candidate, !candidate.ct_gt(&longest));
    }
    Ok((message, u32::try_from(size).map_err(|_| too_short())? - length))
}

fn expand(key: &[u8; 32], what: &[u8], size: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(size + 32));
    let mut counter = 0_u16;
    while bytes.len() < size {
        let input = [&counter.to_be_bytes(), what, &(8 * size as u64).to_be_bytes()].concat();
        bytes.extend_from_slice(&hmac_sha256(key, &input)?);
        counter += 1;
    }
    bytes.truncate(size);
    Ok(bytes)
}

/// Returns the bytes from `start` on. The caller learns their number, but caches do not reveal the position.
fn tail(bytes: &[u8], start: u32) -> Zeroizing<Vec<u8>> {
    let mut shifted = Zeroizing::new(bytes.to_vec());
    let size = shifted.len();
    let mut place = 0;
    while 1 << place < size {
        let step = 1 << place;
        let wanted = Choice::from(((start >> place) & 1) as u8);
        for index in 0..size {
            let from = if index + step < size { shifted[index + step] } else { 0 };
            shifted[index].conditional_assign(&from, wanted);
        }
        place += 1;
    }
    shifted.truncate(size.saturating_sub(start as usize));
    shifted
}

fn too_short() -> Failure {
    Failure::new(Reason::WrongInput, "the key is too short for this padding")
}

#[cfg(test)]
mod tests {
    use super::{PREMASTER, pkcs1, tail, tls};

    fn padded(message: &[u8], size: usize) -> Vec<u8> {
        let mut padded = vec![7; size];
        padded[0] = 0;
        padded[1] = 2;
        padded[size - message.len() - 1] = 0;
        padded[size - message.len()..].copy_from_slice(message);
        padded
    }

    #[test]
    fn a_premaster_secret_or_a_random_one() {
        let mut secret = [5; PREMASTER];
        secret[..2].copy_from_slice(&[3, 3]);
        let good = padded(&secret, 256);
        assert_eq!(&**tls(&good, &[0x0303]).unwrap(), &secret);
        assert_ne!(&**tls(&good, &[0x0302]).unwrap(), &secret, "a different version");
        assert_eq!(&**tls(&good, &[0x0302, 0x0303]).unwrap(), &secret);
        for index in [0, 1, 100, 256 - PREMASTER - 1] {
            let mut bad = good.clone();
            bad[index] = if index == 100 { 0 } else { 9 };
            let random = tls(&bad, &[0x0303]).unwrap();
            assert!(random.len() == PREMASTER && **random != secret, "{index}");
        }
    }

    #[test]
    fn a_message_or_always_the_same_other_one() {
        let good = padded(b"a message", 128);
        assert_eq!(&**pkcs1(&good, b"c", &[1; 32]).unwrap(), b"a message");
        assert_eq!(&**pkcs1(&padded(b"", 128), b"c", &[1; 32]).unwrap(), b"");
        let mut bad = good.clone();
        bad[1] = 1;
        let other = |ciphertext: &[u8]| pkcs1(&bad, ciphertext, &[1; 32]).unwrap();
        assert_eq!(*other(b"c"), *other(b"c"));
        assert_ne!(*other(b"c"), *other(b"d"));
        let mut early = vec![7; 128];
        early[..2].copy_from_slice(&[0, 2]);
        early[9] = 0;
        assert_ne!(pkcs1(&early, b"c", &[1; 32]).unwrap().len(), 118, "seven bytes of padding are too few");
    }

    #[test]
    fn tails() {
        let bytes: Vec<u8> = (0..=99).collect();
        for start in [0, 1, 50, 99, 100] {
            assert_eq!(&**tail(&bytes, start), &bytes[start as usize..]);
        }
    }
}
