//! Structures that an order's key signs: the certificate request (PKCS #10, RFC 2986), and the certificate that
//! proves control of a name in a handshake (RFC 8737 section 3).
//!
//! The library signs in a synchronous callback, but a key server responds asynchronously. Each structure is therefore
//! serialized twice: first to obtain the message to sign, then with the signature.

use crate::{AcmeError, order_key::OrderKey, unix_now};
use boring::ec::PointConversionForm;
use quadrille_engine::KeyType;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, Error, PublicKeyData, SerialNumber,
    SignatureAlgorithm, SigningKey,
};
use std::{cell::RefCell, time::Duration};

/// Returns the certificate request for this key and these names, in DER.
pub(crate) async fn request(key: &OrderKey, names: &[String]) -> Result<Vec<u8>, AcmeError> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    signed(key, |signature| Ok(params.serialize_request(signature)?.der().to_vec())).await
}

/// Returns the validation certificate for this name, signed by its own key, in DER.
pub(crate) async fn challenge(key: &OrderKey, name: &str, digest: &[u8]) -> Result<Vec<u8>, AcmeError> {
    let params = challenge_params(name, digest)?;
    signed(key, |signature| Ok(params.self_signed(signature)?.der().to_vec())).await
}

/// Contents of the validation certificate.
pub(crate) fn challenge_params(name: &str, digest: &[u8]) -> Result<CertificateParams, Error> {
    const DAY: u64 = 24 * 3600;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "ACME challenge");
    params.serial_number = Some(SerialNumber::from(1));
    // Works with an authority whose clock is behind: only the extensions are checked.
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(unix_now()).unwrap_or(0));
    (params.not_before, params.not_after) =
        (now - Duration::from_secs(DAY), now + Duration::from_secs(7 * DAY));
    let digest = <[u8; 32]>::try_from(digest).map_err(|_| Error::CouldNotParseCertificate)?;
    params.custom_extensions.push(CustomExtension::new_acme_identifier(&digest));
    Ok(params)
}

async fn signed(
    key: &OrderKey,
    write: impl Fn(&Signature) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, AcmeError> {
    let mut signature = Signature::of(key)?;
    write(&signature)?;
    let message = signature.message.take();
    signature.bytes = key.sign(&message).await?;
    let der = write(&signature)?;
    match signature.message.take() == message {
        true => Ok(der),
        false => Err(AcmeError::Garbage("the message to sign differs between serializations".to_owned())),
    }
}

/// A signature, and the message it covers.
struct Signature {
    /// The contents of the public key's BIT STRING.
    public: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
    message: RefCell<Vec<u8>>,
    /// Empty until the message has been signed.
    bytes: Vec<u8>,
}

impl Signature {
    fn of(key: &OrderKey) -> Result<Self, AcmeError> {
        let pkey = key.public().pkey();
        let (public, algorithm) = match key.public().key_type() {
            KeyType::Rsa { .. } => (pkey.rsa()?.public_key_to_der_pkcs1()?, &rcgen::PKCS_RSA_SHA256),
            curve => {
                let key = pkey.ec_key()?;
                let mut context = boring::bn::BigNumContext::new()?;
                let form = PointConversionForm::UNCOMPRESSED;
                let point = key.public_key().to_bytes(key.group(), form, &mut context)?;
                let is_p384 = curve == KeyType::EcdsaP384;
                let algorithm =
                    if is_p384 { &rcgen::PKCS_ECDSA_P384_SHA384 } else { &rcgen::PKCS_ECDSA_P256_SHA256 };
                (point, algorithm)
            }
        };
        Ok(Self { public, algorithm, message: RefCell::default(), bytes: Vec::new() })
    }
}

impl PublicKeyData for Signature {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl SigningKey for Signature {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        *self.message.borrow_mut() = message.to_vec();
        Ok(self.bytes.clone())
    }
}

/// The library rejects values that cannot be encoded; they have been validated before.
impl From<Error> for AcmeError {
    fn from(error: Error) -> Self {
        Self::Garbage(format!("cannot encode the message to sign: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use boring::x509::{X509, X509Req};
    use quadrille_config::model::AcmeKeyType;

    #[test]
    fn requests_and_certificates_are_signed_by_the_key_that_is_in_them() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let names = ["a.example.com".to_owned(), "*.b.example.com".to_owned(), "192.0.2.7".to_owned()];
        for key_type in [AcmeKeyType::EcdsaP256, AcmeKeyType::EcdsaP384, AcmeKeyType::Rsa2048] {
            let (request, certificate) = runtime.block_on(async {
                let key = OrderKey::generate(key_type).await.unwrap();
                let certificate = challenge(&key, "a.example.com", &[7; 32]).await.unwrap();
                (request(&key, &names).await.unwrap(), certificate)
            });
            let has = |part: &[u8]| request.windows(part.len()).any(|window| window == part);
            assert!(has(b"\x82\x0da.example.com") && has(b"\x82\x0f*.b.example.com"), "{request:?}");
            assert!(has(&[0x87, 4, 192, 0, 2, 7]) && !has(b"rcgen"), "{request:?}");
            let request = X509Req::from_der(&request).unwrap();
            assert!(request.verify(&request.public_key().unwrap()).unwrap(), "{key_type:?}");
            let certificate = X509::from_der(&certificate).unwrap();
            assert!(certificate.verify(&certificate.public_key().unwrap()).unwrap(), "{key_type:?}");
        }
    }
}
