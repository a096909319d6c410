//! Digests by their names in OpenSSL, computed by the BoringSSL in this module, or by RustCrypto where BoringSSL lacks
//! them.

use crate::{
    error::{Failure, Reason},
    params::Value,
};
use boring::hash::{Hasher, MessageDigest};
use sha2::digest::DynDigest;
use std::ffi::CStr;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Md5,
    /// MD5 and SHA-1 concatenated, for TLS 1.0 and 1.1.
    Md5Sha1,
    Ripemd160,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
}

use Digest as D;

/// Digests with their sizes in bytes and their names, OpenSSL's own name first.
const NAMES: [(Digest, usize, &CStr, &[&str]); 14] = [
    (D::Md5, 16, c"MD5", &["SSL3-MD5", "1.2.840.113549.2.5"]),
    (D::Md5Sha1, 36, c"MD5-SHA1", &[]),
    (D::Ripemd160, 20, c"RIPEMD-160", &["RIPEMD160", "RIPEMD", "RMD160", "1.3.36.3.2.1"]),
    (D::Sha1, 20, c"SHA1", &["SHA-1", "SSL3-SHA1", "1.3.14.3.2.26"]),
    (D::Sha224, 28, c"SHA2-224", &["SHA-224", "SHA224", "2.16.840.1.101.3.4.2.4"]),
    (D::Sha256, 32, c"SHA2-256", &["SHA-256", "SHA256", "2.16.840.1.101.3.4.2.1"]),
    (D::Sha384, 48, c"SHA2-384", &["SHA-384", "SHA384", "2.16.840.1.101.3.4.2.2"]),
    (D::Sha512, 64, c"SHA2-512", &["SHA-512", "SHA512", "2.16.840.1.101.3.4.2.3"]),
    (D::Sha512_224, 28, c"SHA2-512/224", &["SHA-512/224", "SHA512-224", "2.16.840.1.101.3.4.2.5"]),
    (D::Sha512_256, 32, c"SHA2-512/256", &["SHA-512/256", "SHA512-256", "2.16.840.1.101.3.4.2.6"]),
    (D::Sha3_224, 28, c"SHA3-224", &["2.16.840.1.101.3.4.2.7"]),
    (D::Sha3_256, 32, c"SHA3-256", &["2.16.840.1.101.3.4.2.8"]),
    (D::Sha3_384, 48, c"SHA3-384", &["2.16.840.1.101.3.4.2.9"]),
    (D::Sha3_512, 64, c"SHA3-512", &["2.16.840.1.101.3.4.2.10"]),
];

impl Digest {
    /// # Errors
    /// [`Reason::UnsupportedDigest`].
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let is = |(_, _, first, others): &&(Self, usize, &CStr, &[&str])| {
            name.as_bytes().eq_ignore_ascii_case(first.to_bytes())
                || others.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        NAMES.iter().find(is).map(|(digest, ..)| *digest).ok_or_else(|| {
            let supported = "SHA-1, SHA-2, SHA-3, MD5 and RIPEMD-160";
            Failure::new(Reason::UnsupportedDigest, format!("{name}; supported: {supported}"))
        })
    }

    /// Returns the digest that a parameter names.
    pub(crate) fn of_value(value: Value<'_>) -> Result<Self, Failure> {
        Self::named(value.text().ok_or(Reason::UnsupportedDigest)?)
    }

    pub(crate) fn name(self) -> &'static CStr {
        NAMES.iter().find(|(digest, ..)| *digest == self).map_or(c"", |(_, _, name, _)| name)
    }

    /// Output size in bytes.
    pub(crate) fn size(self) -> usize {
        NAMES.iter().find(|(digest, ..)| *digest == self).map_or(0, |(_, size, ..)| *size)
    }

    /// Returns the content of the object identifier in DER; `None` for the MD5-SHA-1 pair, which has none.
    pub(crate) fn oid(self) -> Option<&'static [u8]> {
        Some(match self {
            D::Md5 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 5],
            D::Md5Sha1 => return None,
            D::Ripemd160 => &[0x2b, 0x24, 3, 2, 1],
            D::Sha1 => &[0x2b, 14, 3, 2, 26],
            D::Sha224 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 4],
            D::Sha256 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1],
            D::Sha384 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2],
            D::Sha512 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3],
            D::Sha512_224 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 5],
            D::Sha512_256 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 6],
            D::Sha3_224 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 7],
            D::Sha3_256 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 8],
            D::Sha3_384 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 9],
            D::Sha3_512 => &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 10],
        })
    }

    /// Computes the digest of contiguous data.
    pub(crate) fn one_shot(self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut running = Running::new(self)?;
        running.update(data)?;
        running.finish()
    }
}

/// A digest in progress.
#[derive(Clone)]
pub(crate) struct Running(Vec<Part>);

#[derive(Clone)]
enum Part {
    Boring(Hasher),
    Rust(Box<dyn DynDigest>),
}

impl Running {
    pub(crate) fn new(digest: Digest) -> Result<Self, Failure> {
        let boring = |algorithm| Ok::<_, Failure>(Part::Boring(Hasher::new(algorithm)?));
        Ok(Self(match digest {
            D::Md5 => vec![boring(MessageDigest::md5())?],
            D::Md5Sha1 => vec![boring(MessageDigest::md5())?, boring(MessageDigest::sha1())?],
            D::Sha1 => vec![boring(MessageDigest::sha1())?],
            D::Sha224 => vec![boring(MessageDigest::sha224())?],
            D::Sha256 => vec![boring(MessageDigest::sha256())?],
            D::Sha384 => vec![boring(MessageDigest::sha384())?],
            D::Sha512 => vec![boring(MessageDigest::sha512())?],
            D::Sha512_256 => vec![boring(MessageDigest::sha512_256())?],
            D::Ripemd160 => vec![Part::Rust(Box::new(ripemd::Ripemd160::default()))],
            D::Sha512_224 => vec![Part::Rust(Box::new(sha2::Sha512_224::default()))],
            D::Sha3_224 => vec![Part::Rust(Box::new(sha3::Sha3_224::default()))],
            D::Sha3_256 => vec![Part::Rust(Box::new(sha3::Sha3_256::default()))],
            D::Sha3_384 => vec![Part::Rust(Box::new(sha3::Sha3_384::default()))],
            D::Sha3_512 => vec![Part::Rust(Box::new(sha3::Sha3_512::default()))],
        }))
    }

    pub(crate) fn update(&mut self, data: &[u8]) -> Result<(), Failure> {
        for part in &mut self.0 {
            match part {
                Part::Boring(hasher) => hasher.update(data)?,
                Part::Rust(hasher) => hasher.update(data),
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        for part in self.0 {
            match part {
                Part::Boring(mut hasher) => whole.extend_from_slice(&hasher.finish()?),
                Part::Rust(hasher) => whole.extend_from_slice(&hasher.finalize()),
            }
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, NAMES};

    #[test]
    fn names_as_openssl_writes_them() {
        for (name, size) in [
            ("SHA2-256", 32),
            ("sha256", 32),
            ("SHA-384", 48),
            ("MD5-SHA1", 36),
            ("SHA1", 20),
            ("sha512-224", 28),
            ("ripemd160", 20),
        ] {
            let digest = Digest::named(name).unwrap();
            assert_eq!(digest.size(), size, "{name}");
        }
        assert!(Digest::named("SM3").unwrap_err().detail.contains("SM3"));
    }

    #[test]
    fn sizes_are_those_of_the_results() {
        for (digest, size, name, _) in NAMES {
            assert_eq!(digest.one_shot(b"x").unwrap().len(), size, "{name:?}");
        }
    }
}
