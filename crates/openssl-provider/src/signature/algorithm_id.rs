//! The `AlgorithmIdentifier` of a signature (RFC 5280 section 4.1.1.2), which OpenSSL writes into certificates and CMS.

use crate::{
    der::{algorithm, integer, oid, sequence, tagged},
    digest::Digest,
    error::{Failure, Reason},
    rsa::signature::{Padding, salt_length},
};
use quadrille_engine::{KeyType, PublicKey};

/// Encodes it in DER.
pub(super) fn encode(key: &PublicKey, padding: Padding, digest: Option<Digest>) -> Result<Vec<u8>, Failure> {
    let digest = digest.ok_or_else(unknown)?;
    match (key.key_type(), padding) {
        (KeyType::Rsa { .. }, Padding::Pkcs1) => pkcs1(digest),
        (KeyType::Rsa { .. }, Padding::Pss { mgf1, salt }) => {
            pss(digest, mgf1.unwrap_or(digest), salt_length(key, digest, salt)?)
        }
        (KeyType::Rsa { .. }, Padding::None) => Err(unknown()),
        _ => ecdsa(digest),
    }
}

/// Encodes the identifiers of RFC 8017 appendix A.2.4, of NIST's registry for SHA-3, and of TeleTrusT for RIPEMD-160.
fn pkcs1(digest: Digest) -> Result<Vec<u8>, Failure> {
    let last = match digest {
        Digest::Md5 => 4,
        Digest::Sha1 => 5,
        Digest::Sha256 => 11,
        Digest::Sha384 => 12,
        Digest::Sha512 => 13,
        Digest::Sha224 => 14,
        Digest::Sha512_224 => 15,
        Digest::Sha512_256 => 16,
        Digest::Sha3_224 => return Ok(algorithm(&nist(13))),
        Digest::Sha3_256 => return Ok(algorithm(&nist(14))),
        Digest::Sha3_384 => return Ok(algorithm(&nist(15))),
        Digest::Sha3_512 => return Ok(algorithm(&nist(16))),
        Digest::Ripemd160 => return Ok(algorithm(&[0x2b, 0x24, 3, 3, 1, 2])),
        Digest::Md5Sha1 => return Err(unknown()),
    };
    Ok(algorithm(&[RSA_PREFIX, &[last]].concat()))
}

/// Encodes identifiers without parameters (RFC 5758 section 3.2).
fn ecdsa(digest: Digest) -> Result<Vec<u8>, Failure> {
    let id: Vec<u8> = match digest {
        Digest::Sha1 => vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
        Digest::Sha224 => vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 1],
        Digest::Sha256 => vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
        Digest::Sha384 => vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
        Digest::Sha512 => vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4],
        Digest::Sha3_224 => nist(9),
        Digest::Sha3_256 => nist(10),
        Digest::Sha3_384 => nist(11),
        Digest::Sha3_512 => nist(12),
        _ => return Err(unknown()),
    };
    Ok(sequence(&[oid(&id)]))
}

/// Encodes `RSASSA-PSS-params` (RFC 8017 appendix A.2.3). DER leaves out values that are the defaults.
fn pss(digest: Digest, mgf1: Digest, salt: usize) -> Result<Vec<u8>, Failure> {
    let mut parameters = Vec::new();
    if digest != Digest::Sha1 {
        parameters.push(tagged(0xa0, &hash(digest)?));
    }
    if mgf1 != Digest::Sha1 {
        let mask = sequence(&[oid(&[RSA_PREFIX, &[8]].concat()), hash(mgf1)?]);
        parameters.push(tagged(0xa1, &mask));
    }
    if salt != DEFAULT_SALT {
        parameters.push(tagged(0xa2, &integer(salt)));
    }
    Ok(sequence(&[oid(&[RSA_PREFIX, &[10]].concat()), sequence(&parameters)]))
}

/// Encodes a digest that RFC 4055 and RFC 8017 allow there, as OpenSSL does; others would be rejected by verifiers.
fn hash(digest: Digest) -> Result<Vec<u8>, Failure> {
    match digest {
        Digest::Sha1
        | Digest::Sha224
        | Digest::Sha256
        | Digest::Sha384
        | Digest::Sha512
        | Digest::Sha512_224
        | Digest::Sha512_256 => digest.oid().map(algorithm).ok_or_else(unknown),
        _ => Err(unknown()),
    }
}

/// Returns an identifier of NIST's signature algorithms, 2.16.840.1.101.3.4.3.
fn nist(last: u8) -> Vec<u8> {
    vec![0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, last]
}

fn unknown() -> Failure {
    Failure::new(Reason::UnsupportedDigest, "no AlgorithmIdentifier for this signature")
}

const RSA_PREFIX: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
const DEFAULT_SALT: usize = 20;
