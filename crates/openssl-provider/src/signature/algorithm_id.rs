//! The `AlgorithmIdentifier` of a signature (RFC 5280 section 4.1.1.2), which OpenSSL writes into certificates and CMS.

use crate::{
    digest::Digest,
    error::{Failure, Reason},
    rsa::signature::{Padding, Salt},
};
use quadrille_engine::KeyType;

/// Encodes it in DER.
pub(super) fn encode(key: KeyType, padding: Padding, digest: Option<Digest>) -> Result<Vec<u8>, Failure> {
    let unknown = || Failure::new(Reason::UnsupportedDigest, "no AlgorithmIdentifier for this signature");
    let digest = digest.ok_or_else(unknown)?;
    match (key, padding) {
        (KeyType::Rsa { .. }, Padding::Pkcs1) => {
            // 1.2.840.113549.1.1.x (RFC 8017 appendix A.2.4).
            let last = match digest {
                Digest::Md5 => 4,
                Digest::Sha1 => 5,
                Digest::Sha256 => 11,
                Digest::Sha384 => 12,
                Digest::Sha512 => 13,
                Digest::Sha224 => 14,
                Digest::Sha512_256 => 16,
                Digest::Md5Sha1 => return Err(unknown()),
            };
            Ok(sequence(&[oid(&[RSA_PREFIX, &[last]].concat()), NULL.to_vec()]))
        }
        (KeyType::Rsa { .. }, Padding::Pss { mgf1, salt }) => pss(digest, mgf1.unwrap_or(digest), salt),
        (KeyType::Rsa { .. }, Padding::None) => Err(unknown()),
        _ => {
            let id: &[u8] = match digest {
                Digest::Sha1 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
                Digest::Sha256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
                Digest::Sha384 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
                Digest::Sha512 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4],
                _ => return Err(unknown()),
            };
            Ok(sequence(&[oid(id)]))
        }
    }
}

/// Encodes `RSASSA-PSS-params` (RFC 8017 appendix A.2.3). Only for salts as long as the digest, as in certificates.
fn pss(digest: Digest, mgf1: Digest, salt: Salt) -> Result<Vec<u8>, Failure> {
    let length = match salt {
        Salt::Digest => digest.size(),
        Salt::Length(length) => length,
        _ => {
            return Err(Failure::new(
                Reason::UnsupportedParameter,
                "set the salt length: rsa_pss_saltlen:digest",
            ));
        }
    };
    let length =
        u8::try_from(length).ok().filter(|length| *length < 128).ok_or(Reason::UnsupportedParameter)?;
    let mgf1 = sequence(&[oid(&[RSA_PREFIX, &[8]].concat()), hash(mgf1)?]);
    let parameters = sequence(&[
        tagged(0xa0, &hash(digest)?),
        tagged(0xa1, &mgf1),
        tagged(0xa2, &tagged(0x02, &[length])),
    ]);
    Ok(sequence(&[oid(&[RSA_PREFIX, &[10]].concat()), parameters]))
}

fn hash(digest: Digest) -> Result<Vec<u8>, Failure> {
    let last = match digest {
        Digest::Sha1 => return Ok(sequence(&[oid(&[0x2b, 14, 3, 2, 26]), NULL.to_vec()])),
        Digest::Sha256 => 1,
        Digest::Sha384 => 2,
        Digest::Sha512 => 3,
        Digest::Sha224 => 4,
        Digest::Sha512_256 => 6,
        Digest::Md5 | Digest::Md5Sha1 => return Err(Reason::UnsupportedDigest.into()),
    };
    Ok(sequence(&[oid(&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last]), NULL.to_vec()]))
}

const RSA_PREFIX: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
const NULL: [u8; 2] = [5, 0];

fn oid(bytes: &[u8]) -> Vec<u8> {
    tagged(0x06, bytes)
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

/// The contents are always shorter than 128 bytes.
fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap_or(0);
    [&[tag, length], bytes].concat()
}
