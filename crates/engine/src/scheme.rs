//! Signature schemes, by their TLS code points (RFC 8446 section 4.2.3).

use crate::KeyType;
use boring::hash::MessageDigest;
use quadrille_kernels::MlDsa;

/// A TLS signature scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureScheme {
    /// TLS 1.0 and 1.1: RSASSA-PKCS1-v1_5 over MD5 and SHA-1 side by side (RFC 2246 section 7.4.3).
    RsaPkcs1Md5Sha1,
    /// RSASSA-PKCS1-v1_5 with SHA-1.
    RsaPkcs1Sha1,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RsaPkcs1Sha256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    RsaPkcs1Sha384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    RsaPkcs1Sha512,
    /// RSASSA-PSS with SHA-256 and a salt of the same length.
    RsaPssSha256,
    /// RSASSA-PSS with SHA-384 and a salt of the same length.
    RsaPssSha384,
    /// RSASSA-PSS with SHA-512 and a salt of the same length.
    RsaPssSha512,
    /// ECDSA with SHA-1, on any curve.
    EcdsaSha1,
    /// ECDSA with SHA-256; on P-256 in TLS 1.3.
    EcdsaSha256,
    /// ECDSA with SHA-384; on P-384 in TLS 1.3.
    EcdsaSha384,
    /// ECDSA with SHA-512; on P-521 in TLS 1.3.
    EcdsaSha512,
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// Pure ML-DSA with an empty context (FIPS 204), in TLS 1.3.
    MlDsa(MlDsa),
}

/// MD5 and SHA-1 side by side.
pub(crate) const MD5_SHA1_LEN: usize = 36;

/// RSA signature padding (RFC 8017).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RsaPadding {
    Pkcs1,
    Pss,
}

use SignatureScheme as S;

impl SignatureScheme {
    /// Returns the scheme of a TLS code point. `0xff01` is BoringSSL's private value for the MD5 and SHA-1 pair.
    pub fn from_code_point(code: u16) -> Option<Self> {
        Some(match code {
            0xff01 => S::RsaPkcs1Md5Sha1,
            0x0201 => S::RsaPkcs1Sha1,
            0x0401 => S::RsaPkcs1Sha256,
            0x0501 => S::RsaPkcs1Sha384,
            0x0601 => S::RsaPkcs1Sha512,
            0x0804 => S::RsaPssSha256,
            0x0805 => S::RsaPssSha384,
            0x0806 => S::RsaPssSha512,
            0x0203 => S::EcdsaSha1,
            0x0403 => S::EcdsaSha256,
            0x0503 => S::EcdsaSha384,
            0x0603 => S::EcdsaSha512,
            0x0807 => S::Ed25519,
            0x0904 => S::MlDsa(MlDsa::MlDsa44),
            0x0905 => S::MlDsa(MlDsa::MlDsa65),
            0x0906 => S::MlDsa(MlDsa::MlDsa87),
            _ => return None,
        })
    }

    /// Returns whether a key of this type can create such a signature.
    pub fn fits(self, key: KeyType) -> bool {
        match key {
            KeyType::Rsa { .. } => self.rsa_padding().is_some(),
            KeyType::EcdsaP256 | KeyType::EcdsaP384 | KeyType::EcdsaP521 => {
                matches!(self, S::EcdsaSha1 | S::EcdsaSha256 | S::EcdsaSha384 | S::EcdsaSha512)
            }
            KeyType::Ed25519 => self == S::Ed25519,
            KeyType::MlDsa(set) => self == S::MlDsa(set),
        }
    }

    pub(crate) fn rsa_padding(self) -> Option<RsaPadding> {
        match self {
            S::RsaPkcs1Md5Sha1
            | S::RsaPkcs1Sha1
            | S::RsaPkcs1Sha256
            | S::RsaPkcs1Sha384
            | S::RsaPkcs1Sha512 => Some(RsaPadding::Pkcs1),
            S::RsaPssSha256 | S::RsaPssSha384 | S::RsaPssSha512 => Some(RsaPadding::Pss),
            _ => None,
        }
    }

    /// Hash that is applied to the message; Ed25519 and ML-DSA sign the message itself, and the MD5 and SHA-1 pair is
    /// two hashes.
    pub(crate) fn hash(self) -> Option<MessageDigest> {
        match self {
            S::RsaPkcs1Md5Sha1 | S::Ed25519 | S::MlDsa(_) => None,
            S::RsaPkcs1Sha1 | S::EcdsaSha1 => Some(MessageDigest::sha1()),
            S::RsaPkcs1Sha256 | S::RsaPssSha256 | S::EcdsaSha256 => Some(MessageDigest::sha256()),
            S::RsaPkcs1Sha384 | S::RsaPssSha384 | S::EcdsaSha384 => Some(MessageDigest::sha384()),
            S::RsaPkcs1Sha512 | S::RsaPssSha512 | S::EcdsaSha512 => Some(MessageDigest::sha512()),
        }
    }

    /// Length of the digest; Ed25519 and ML-DSA accept messages of any length.
    pub(crate) fn digest_len(self) -> Option<usize> {
        match self {
            S::RsaPkcs1Md5Sha1 => Some(MD5_SHA1_LEN),
            _ => self.hash().map(|hash| hash.size()),
        }
    }
}
