//! Digests by their names in OpenSSL, computed by the BoringSSL in this module.

use crate::{
    error::{Failure, Reason},
    params::Value,
};
use boring::{
    hash::{Hasher, MessageDigest},
    nid::Nid,
};
use std::ffi::CStr;

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Md5,
    /// MD5 and SHA-1 concatenated, for TLS 1.0 and 1.1.
    Md5Sha1,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_256,
}

use Digest as D;

/// Digests with their names, OpenSSL's own name first.
const NAMES: [(Digest, &CStr, &[&str]); 8] = [
    (D::Md5, c"MD5", &["SSL3-MD5", "1.2.840.113549.2.5"]),
    (D::Md5Sha1, c"MD5-SHA1", &[]),
    (D::Sha1, c"SHA1", &["SHA-1", "SSL3-SHA1", "1.3.14.3.2.26"]),
    (D::Sha224, c"SHA2-224", &["SHA-224", "SHA224", "2.16.840.1.101.3.4.2.4"]),
    (D::Sha256, c"SHA2-256", &["SHA-256", "SHA256", "2.16.840.1.101.3.4.2.1"]),
    (D::Sha384, c"SHA2-384", &["SHA-384", "SHA384", "2.16.840.1.101.3.4.2.2"]),
    (D::Sha512, c"SHA2-512", &["SHA-512", "SHA512", "2.16.840.1.101.3.4.2.3"]),
    (D::Sha512_256, c"SHA2-512/256", &["SHA-512/256", "SHA512-256", "2.16.840.1.101.3.4.2.6"]),
];

impl Digest {
    /// # Errors
    /// [`Reason::UnsupportedDigest`].
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let is = |(_, first, others): &&(Self, &CStr, &[&str])| {
            name.as_bytes().eq_ignore_ascii_case(first.to_bytes())
                || others.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        NAMES.iter().find(is).map(|(digest, ..)| *digest).ok_or_else(|| {
            Failure::new(Reason::UnsupportedDigest, format!("{name}; supported: SHA-1, SHA-2 and MD5"))
        })
    }

    /// Returns the digest that a parameter names.
    pub(crate) fn of_value(value: Value<'_>) -> Result<Self, Failure> {
        Self::named(value.text().ok_or(Reason::UnsupportedDigest)?)
    }

    pub(crate) fn name(self) -> &'static CStr {
        NAMES.iter().find(|(digest, ..)| *digest == self).map_or(c"", |(_, name, _)| name)
    }

    /// Output size in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            D::Md5Sha1 => 36,
            other => other.algorithm().map_or(0, |algorithm| algorithm.size()),
        }
    }

    /// Returns BoringSSL's algorithm; `None` for the MD5-SHA-1 pair.
    pub(crate) fn algorithm(self) -> Option<MessageDigest> {
        Some(match self {
            D::Md5 => MessageDigest::md5(),
            D::Sha1 => MessageDigest::sha1(),
            D::Sha224 => MessageDigest::sha224(),
            D::Sha256 => MessageDigest::sha256(),
            D::Sha384 => MessageDigest::sha384(),
            D::Sha512 => MessageDigest::sha512(),
            D::Sha512_256 => MessageDigest::sha512_256(),
            D::Md5Sha1 => return None,
        })
    }

    pub(crate) fn nid(self) -> Nid {
        self.algorithm().map_or(Nid::MD5_SHA1, |algorithm| algorithm.type_())
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
pub(crate) struct Running(Vec<Hasher>);

impl Running {
    pub(crate) fn new(digest: Digest) -> Result<Self, Failure> {
        let parts = match digest.algorithm() {
            Some(algorithm) => vec![algorithm],
            None => vec![MessageDigest::md5(), MessageDigest::sha1()],
        };
        Ok(Self(parts.into_iter().map(Hasher::new).collect::<Result<_, _>>()?))
    }

    pub(crate) fn update(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(|part| Ok(part.update(data)?))
    }

    pub(crate) fn finish(mut self) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        for part in &mut self.0 {
            whole.extend_from_slice(&part.finish()?);
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn names_as_openssl_writes_them() {
        for (name, size) in
            [("SHA2-256", 32), ("sha256", 32), ("SHA-384", 48), ("MD5-SHA1", 36), ("SHA1", 20)]
        {
            let digest = Digest::named(name).unwrap();
            assert_eq!((digest.size(), digest.one_shot(b"x").unwrap().len()), (size, size), "{name}");
        }
        assert!(Digest::named("SHA3-256").unwrap_err().detail.contains("SHA3-256"));
    }
}
