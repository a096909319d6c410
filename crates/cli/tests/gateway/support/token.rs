//! JSON Web Tokens and their issuers.

use base64ct::{Base64UrlUnpadded, Encoding};
use boring::{
    bn::BigNumContext,
    ec::{EcGroup, EcKey},
    ecdsa::EcdsaSig,
    hash::{MessageDigest, hash},
    nid::Nid,
    pkey::{Id, PKey, Private},
    rsa::{Padding, Rsa},
    sign::{RsaPssSaltlen, Signer},
};
use serde_json::{Value, json};

/// An issuer's signing key.
pub struct TokenKey {
    id: &'static str,
    key: PKey<Private>,
}

impl TokenKey {
    pub fn rsa(id: &'static str, bits: u32) -> Self {
        let key = PKey::from_rsa(Rsa::generate(bits).expect("a key")).expect("a key");
        Self { id, key }
    }

    pub fn p256(id: &'static str) -> Self {
        Self::ecdsa(id, Nid::X9_62_PRIME256V1)
    }

    pub fn p384(id: &'static str) -> Self {
        Self::ecdsa(id, Nid::SECP384R1)
    }

    fn ecdsa(id: &'static str, curve: Nid) -> Self {
        let group = EcGroup::from_curve_name(curve).expect("a curve");
        let key = PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key");
        Self { id, key }
    }

    pub fn ed25519(id: &'static str) -> Self {
        Self { id, key: PKey::generate(Id::ED25519).expect("a key") }
    }

    /// Returns the public key (RFC 7517).
    pub fn jwk(&self) -> Value {
        let encoded = |bytes: &[u8]| Base64UrlUnpadded::encode_string(bytes);
        if let Ok(rsa) = self.key.rsa() {
            let (n, e) = (encoded(&rsa.n().to_vec()), encoded(&rsa.e().to_vec()));
            return json!({ "kty": "RSA", "kid": self.id, "n": n, "e": e });
        }
        if let Ok(key) = self.key.ec_key() {
            let mut context = BigNumContext::new().expect("memory");
            let (mut x, mut y) =
                (boring::bn::BigNum::new().expect("memory"), boring::bn::BigNum::new().expect("memory"));
            key.public_key()
                .affine_coordinates_gfp(key.group(), &mut x, &mut y, &mut context)
                .expect("a point");
            let size = key.group().degree().div_ceil(8) as usize;
            let coordinate = |number: &boring::bn::BigNum| {
                let bytes = number.to_vec();
                encoded(&[vec![0; size - bytes.len()], bytes].concat())
            };
            let curve = if size == 32 { "P-256" } else { "P-384" };
            return json!({ "kty": "EC", "kid": self.id, "crv": curve, "x": coordinate(&x), "y": coordinate(&y) });
        }
        let mut raw = [0; 32];
        let x = encoded(self.key.raw_public_key(&mut raw).expect("a key"));
        json!({ "kty": "OKP", "kid": self.id, "crv": "Ed25519", "x": x })
    }

    /// Returns a token with this payload, signed by an algorithm of the key.
    pub fn token(&self, algorithm: &str, payload: &Value) -> String {
        self.token_with(&json!({ "alg": algorithm, "kid": self.id, "typ": "JWT" }), payload)
    }

    /// Returns a token with this header, signed by its `alg`.
    pub fn token_with(&self, header: &Value, payload: &Value) -> String {
        let part = |value: &Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(header), part(payload));
        let signature = self.sign(header["alg"].as_str().unwrap_or_default(), signed.as_bytes());
        format!("{signed}.{}", Base64UrlUnpadded::encode_string(&signature))
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let digest = match algorithm.get(2..) {
            Some("384") => MessageDigest::sha384(),
            Some("512") => MessageDigest::sha512(),
            _ => MessageDigest::sha256(),
        };
        if let Ok(key) = self.key.ec_key() {
            let hashed = hash(digest, message).expect("a digest");
            let signature = EcdsaSig::sign(&hashed, &key).expect("a signature");
            let size = key.group().degree().div_ceil(8) as usize;
            let number = |bytes: Vec<u8>| [vec![0; size - bytes.len()], bytes].concat();
            return [number(signature.r().to_vec()), number(signature.s().to_vec())].concat();
        }
        if self.key.id() == Id::ED25519 {
            let mut signer = Signer::new_without_digest(&self.key).expect("a signer");
            return signer.sign_oneshot_to_vec(message).expect("a signature");
        }
        let mut signer = Signer::new(digest, &self.key).expect("a signer");
        if algorithm.starts_with("PS") {
            signer.set_rsa_padding(Padding::PKCS1_PSS).expect("padding");
            signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH).expect("a length");
        }
        signer.update(message).expect("a message");
        signer.sign_to_vec().expect("a signature")
    }
}

/// Returns a set of public keys (RFC 7517).
pub fn jwks(keys: &[&TokenKey]) -> String {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// Returns the time this many seconds from now, in seconds since 1970.
pub fn seconds_from_now(seconds: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(now.as_secs()).expect("a time") + seconds
}
