//! Encryption with the public key: EME-PKCS1-v1_5, EME-OAEP, or no padding.

use super::{public, raw_public};
use crate::{
    digest::Digest,
    error::{Failure, Reason},
};
use boring::rand::rand_bytes;
use quadrille_engine::PublicKey;
use zeroize::Zeroizing;

/// Padding of an encrypted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    Pkcs1,
    /// Premaster secret of TLS 1.2 and earlier; for decryption only.
    Tls,
    Oaep {
        digest: Digest,
        mgf1: Option<Digest>,
        label: Vec<u8>,
    },
    None,
}

pub(crate) fn encrypt(key: &PublicKey, padding: &Padding, message: &[u8]) -> Result<Vec<u8>, Failure> {
    let rsa = public(key)?;
    let size = rsa.size() as usize;
    let padded = match padding {
        Padding::None => Zeroizing::new(message.to_vec()),
        Padding::Pkcs1 => pkcs1(size, message)?,
        Padding::Oaep { digest, mgf1, label } => {
            oaep(size, *digest, mgf1.unwrap_or(*digest), label, message)?
        }
        Padding::Tls => {
            return Err(Failure::new(Reason::UnsupportedParameter, "this padding is for decryption only"));
        }
    };
    raw_public(&rsa, &padded)
}

/// Builds `00 02 random-not-zero 00 message`.
fn pkcs1(size: usize, message: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let fill = size.checked_sub(message.len() + 3).filter(|fill| *fill >= 8).ok_or_else(too_long)?;
    let mut padded = Zeroizing::new(vec![0; size]);
    padded[1] = 2;
    for place in &mut padded[2..2 + fill] {
        while *place == 0 {
            rand_bytes(std::slice::from_mut(place))?;
        }
    }
    padded[3 + fill..].copy_from_slice(message);
    Ok(padded)
}

/// Applies EME-OAEP encoding (RFC 8017 section 7.1.1).
fn oaep(
    size: usize,
    digest: Digest,
    mgf1: Digest,
    label: &[u8],
    message: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let hash = digest.size();
    let fill = size.checked_sub(message.len() + 2 * hash + 2).ok_or_else(too_long)?;
    let mut padded = Zeroizing::new(vec![0; size]);
    let (seed, data) = padded[1..].split_at_mut(hash);
    rand_bytes(seed)?;
    data[..hash].copy_from_slice(&digest.one_shot(label)?);
    data[hash + fill] = 1;
    data[hash + fill + 1..].copy_from_slice(message);
    mask(mgf1, seed, data)?;
    mask(mgf1, data, seed)?;
    Ok(padded)
}

/// Adds MGF1 of `seed` to `data` (RFC 8017 section B.2.1).
pub(super) fn mask(digest: Digest, seed: &[u8], data: &mut [u8]) -> Result<(), Failure> {
    for (counter, block) in (0_u32..).zip(data.chunks_mut(digest.size().max(1))) {
        let mut input = Zeroizing::new(seed.to_vec());
        input.extend(counter.to_be_bytes());
        let mask = Zeroizing::new(digest.one_shot(&input)?);
        block.iter_mut().zip(mask.iter()).for_each(|(byte, mask)| *byte ^= mask);
    }
    Ok(())
}

fn too_long() -> Failure {
    Failure::new(Reason::WrongInput, "the message is too long for the key and the padding")
}
