//! JSON Web Key Sets (RFC 7517), and the verification of signatures with them.

use super::{
    status::Problem,
    token::{Algorithm, Token},
};
use base64ct::{Base64UrlUnpadded, Encoding};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

/// The usable keys of an issuer.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Jwk>);

#[derive(Debug)]
struct Jwk {
    /// Key ID; empty if absent.
    id: String,
    /// Algorithm of the key, if specified; an unknown algorithm matches no token.
    algorithm: Option<Option<Algorithm>>,
    key: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// Points in uncompressed form.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

/// A JSON Web Key as written; parameters that the key type does not have are empty.
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
    /// Parses a key set.
    ///
    /// # Errors
    /// Describes the problem; a set without a usable key is an error, too.
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let document: Document =
            serde_json::from_slice(text).map_err(|_| "not a JSON Web Key Set (RFC 7517)")?;
        let read = |key| serde_json::from_value(key).ok().and_then(Jwk::read);
        let keys: Vec<Jwk> = document.keys.into_iter().filter_map(read).collect();
        if keys.is_empty() {
            return Err("no usable key: RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519");
        }
        Ok(Self(keys))
    }

    /// Checks that one of the keys has signed the token.
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
    /// Returns `None` if the key type is not supported, the key is not for signatures, or the key is invalid.
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

/// Encodes a point of a curve (SEC 1 section 2.3.3) whose coordinates have this many bytes.
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
        // The library's range; shorter keys could be broken, longer ones are slow.
        (256..=1024).contains(&n.len()).then_some(Self::Rsa(RsaPublicKeyComponents { n, e }))
    }

    /// Returns whether the key has signed the token, with an algorithm for its type.
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
