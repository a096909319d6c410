//! Sets of public keys (RFC 7517), and the verification of signatures by them.

use super::{
    status::Problem,
    token::{Algorithm, Token},
};
use base64ct::{Base64UrlUnpadded, Encoding};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

/// The keys of an issuer, without those that cannot be used here.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Jwk>);

#[derive(Debug)]
struct Jwk {
    /// Empty if it says nothing.
    id: String,
    /// What it is for, if it says so; something that is not known here is for nothing.
    algorithm: Option<Option<Algorithm>>,
    key: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// Points in the uncompressed form.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// A key as it is written; what a kind of key does not have is empty.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Written {
    kty: String,
    kid: String,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl KeySet {
    /// Reads a set of keys.
    ///
    /// # Errors
    /// Says what is wrong with it; so it does of a set without a key that can be used.
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let document: Document =
            serde_json::from_slice(text).map_err(|_| "no set of keys in JSON (RFC 7517)")?;
        let read = |key| serde_json::from_value(key).ok().and_then(Jwk::read);
        let keys: Vec<Jwk> = document.keys.into_iter().filter_map(read).collect();
        if keys.is_empty() {
            return Err(
                "a set without a key that can be used: RSA of 2048 to 8192 bits, P-256, P-384, Ed25519",
            );
        }
        Ok(Self(keys))
    }

    /// Whether one of the keys has signed the token.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), Problem> {
        if self.0.is_empty() {
            return Err(Problem::NoValidKey);
        }
        let mut eligible = self.0.iter().filter(|key| key.may_have_signed(token)).peekable();
        if eligible.peek().is_none() {
            return Err(Problem::NoKeyMatches);
        }
        if eligible.any(|key| key.key.verifies(token)) { Ok(()) } else { Err(Problem::VerificationFails) }
    }
}

impl Jwk {
    /// `None` if it is of a kind that is not known, for something else than signatures, or not what it says.
    fn read(written: Written) -> Option<Self> {
        if written.usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let bytes = |text: &str| Base64UrlUnpadded::decode_vec(text.trim_end_matches('=')).ok();
        let key = match (written.kty.as_str(), written.crv.as_str()) {
            ("RSA", _) => PublicKey::rsa(bytes(&written.n)?, bytes(&written.e)?)?,
            ("EC", "P-256") => PublicKey::P256(point(&bytes(&written.x)?, &bytes(&written.y)?, 32)?),
            ("EC", "P-384") => PublicKey::P384(point(&bytes(&written.x)?, &bytes(&written.y)?, 48)?),
            ("OKP", "Ed25519") => PublicKey::Ed25519(bytes(&written.x).filter(|key| key.len() == 32)?),
            _ => return None,
        };
        let algorithm = written.alg.filter(|name| !name.is_empty());
        let algorithm = algorithm.map(|name| Algorithm::named(&name));
        Some(Self { id: written.kid, algorithm, key })
    }

    fn may_have_signed(&self, token: &Token<'_>) -> bool {
        let same_id = token.key_id.is_empty() || self.id.is_empty() || self.id == token.key_id;
        same_id && self.algorithm.is_none_or(|own| own == Some(token.algorithm))
    }
}

/// A point of a curve (SEC 1 section 2.3.3), whose coordinates have this many bytes.
fn point(x: &[u8], y: &[u8], size: usize) -> Option<Vec<u8>> {
    (x.len() == size && y.len() == size).then(|| [&[4], x, y].concat())
}

impl PublicKey {
    fn rsa(n: Vec<u8>, e: Vec<u8>) -> Option<Self> {
        let stripped = |bytes: Vec<u8>| {
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            bytes[zeros..].to_vec()
        };
        let (n, e) = (stripped(n), stripped(e));
        // What the library verifies with; a shorter key could be broken, a longer one would take long.
        (256..=1024).contains(&n.len()).then_some(Self::Rsa(RsaPublicKeyComponents { n, e }))
    }

    /// Whether it has signed the token, by an algorithm that is for keys of this kind.
    fn verifies(&self, token: &Token<'_>) -> bool {
        let (message, signed) = (token.signed.as_bytes(), token.signature.as_slice());
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signed).is_ok()
        };
        let rsa = |parameters: &'static signature::RsaParameters, key: &RsaPublicKeyComponents<Vec<u8>>| {
            key.verify(parameters, message, signed).is_ok()
        };
        match (self, token.algorithm) {
            (Self::Rsa(key), Algorithm::Rs256) => rsa(&signature::RSA_PKCS1_2048_8192_SHA256, key),
            (Self::Rsa(key), Algorithm::Rs384) => rsa(&signature::RSA_PKCS1_2048_8192_SHA384, key),
            (Self::Rsa(key), Algorithm::Rs512) => rsa(&signature::RSA_PKCS1_2048_8192_SHA512, key),
            (Self::Rsa(key), Algorithm::Ps256) => rsa(&signature::RSA_PSS_2048_8192_SHA256, key),
            (Self::Rsa(key), Algorithm::Ps384) => rsa(&signature::RSA_PSS_2048_8192_SHA384, key),
            (Self::Rsa(key), Algorithm::Ps512) => rsa(&signature::RSA_PSS_2048_8192_SHA512, key),
            (Self::P256(key), Algorithm::Es256) => by(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Self::P384(key), Algorithm::Es384) => by(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Self::Ed25519(key), Algorithm::EdDsa) => by(&signature::ED25519, key),
            _ => false,
        }
    }
}
