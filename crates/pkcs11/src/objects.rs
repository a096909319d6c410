//! Keys in a token, and their public halves.

use crate::{TokenError, connection::Failure};
use boring::{
    bn::BigNum,
    error::ErrorStack,
    pkey::{PKey, Public},
    rsa::Rsa,
    x509::X509,
};
use cryptoki::{
    object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle},
    session::Session,
};
use quadrille_config::model::Pkcs11Key;
use quadrille_engine::PublicKey;

/// A private key in a token.
#[derive(Clone, Debug)]
pub struct TokenObject {
    /// URI that names it, with label and identifier.
    pub uri: Pkcs11Key,
    /// Public half, if the token has it and its type is supported.
    pub public: Option<PublicKey>,
}

/// Returns the private keys that match the URI.
pub(crate) fn list(session: &Session, key: &Pkcs11Key) -> Result<Vec<TokenObject>, Failure> {
    let listed = |handle: ObjectHandle| {
        let object = Description::read(session, handle)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok().filter(|text| !text.is_empty());
        let id = Some(object.id.clone()).filter(|id| !id.is_empty());
        let uri = Pkcs11Key { token: key.token.clone(), object: text(&object.label), id };
        let public = object.public(session)?.and_then(|public| PublicKey::from_pkey(public).ok());
        Ok(TokenObject { uri, public })
    };
    session.find_objects(&template(key))?.into_iter().map(listed).collect()
}

/// Finds the private key that the URI names. If several match, `public` distinguishes them.
pub(crate) fn find(
    session: &Session,
    key: &Pkcs11Key,
    public: Option<&PublicKey>,
) -> Result<ObjectHandle, Failure> {
    let found = session.find_objects(&template(key))?;
    match (&found[..], public) {
        ([], _) => Err(TokenError::NoKey(key.to_string()).into()),
        ([only], _) => Ok(*only),
        (_, None) => Err(TokenError::SeveralKeys(key.to_string()).into()),
        (several, Some(wanted)) => {
            let mut matching = Vec::new();
            for handle in several {
                let public = Description::read(session, *handle)?.public(session)?;
                if public.is_some_and(|public| wanted.pkey().public_eq(&public)) {
                    matching.push(*handle);
                }
            }
            match matching[..] {
                [] => Err(TokenError::Mismatch(key.to_string()).into()),
                [only] => Ok(only),
                _ => Err(TokenError::SeveralKeys(key.to_string()).into()),
            }
        }
    }
}

/// Returns the public half of the private key that the URI names: `wanted`, unless the token has another one.
pub(crate) fn public_half(
    session: &Session,
    key: &Pkcs11Key,
    wanted: Option<&PublicKey>,
) -> Result<PublicKey, Failure> {
    let handle = find(session, key, wanted)?;
    let stored = Description::read(session, handle)?.public(session)?;
    match (wanted, stored) {
        (Some(wanted), Some(stored)) if !wanted.pkey().public_eq(&stored) => {
            Err(TokenError::Mismatch(key.to_string()).into())
        }
        (Some(wanted), _) => Ok(wanted.clone()),
        (None, None) => Err(TokenError::NoPublicKey(key.to_string()).into()),
        (None, Some(stored)) => PublicKey::from_pkey(stored)
            .map_err(|error| TokenError::Unsupported(key.to_string(), error.to_string()).into()),
    }
}

fn template(key: &Pkcs11Key) -> Vec<Attribute> {
    let label = key.object.as_ref().map(|label| Attribute::Label(label.clone().into_bytes()));
    let id = key.id.clone().map(Attribute::Id);
    [Attribute::Class(ObjectClass::PRIVATE_KEY)].into_iter().chain(label).chain(id).collect()
}

/// Attributes of a key or a certificate. Missing ones are empty.
#[derive(Default)]
struct Description {
    kind: Option<KeyType>,
    label: Vec<u8>,
    id: Vec<u8>,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
    parameters: Vec<u8>,
    point: Vec<u8>,
    value: Vec<u8>,
}

impl Description {
    fn read(session: &Session, handle: ObjectHandle) -> Result<Self, Failure> {
        // CKA_VALUE of a private key is not requested: it is the secret.
        const PUBLIC: [AttributeType; 7] = [
            AttributeType::KeyType,
            AttributeType::Label,
            AttributeType::Id,
            AttributeType::Modulus,
            AttributeType::PublicExponent,
            AttributeType::EcParams,
            AttributeType::EcPoint,
        ];
        Self::with(session, handle, &PUBLIC)
    }

    fn with(session: &Session, handle: ObjectHandle, wanted: &[AttributeType]) -> Result<Self, Failure> {
        let mut read = Self::default();
        for attribute in session.get_attributes(handle, wanted)? {
            match attribute {
                Attribute::KeyType(kind) => read.kind = Some(kind),
                Attribute::Label(label) => read.label = label,
                Attribute::Id(id) => read.id = id,
                Attribute::Modulus(modulus) => read.modulus = modulus,
                Attribute::PublicExponent(exponent) => read.exponent = exponent,
                Attribute::EcParams(parameters) => read.parameters = parameters,
                Attribute::EcPoint(point) => read.point = point,
                Attribute::Value(value) => read.value = value,
                _ => {}
            }
        }
        Ok(read)
    }

    /// Returns the public half: of the key itself for RSA, otherwise of the public key or the certificate with the same
    /// identifier or label.
    fn public(&self, session: &Session) -> Result<Option<PKey<Public>>, Failure> {
        if let Some(public) = self.own_public() {
            return Ok(Some(public));
        }
        for handle in session.find_objects(&self.related(ObjectClass::PUBLIC_KEY))? {
            let related = Self::read(session, handle)?;
            if related.kind == self.kind
                && let Some(public) = related.own_public()
            {
                return Ok(Some(public));
            }
        }
        for handle in session.find_objects(&self.related(ObjectClass::CERTIFICATE))? {
            let certificate = Self::with(session, handle, &[AttributeType::Value])?;
            if let Ok(public) = X509::from_der(&certificate.value).and_then(|leaf| leaf.public_key()) {
                return Ok(Some(public));
            }
            drop(ErrorStack::get());
        }
        Ok(None)
    }

    fn own_public(&self) -> Option<PKey<Public>> {
        let read = if self.modulus.is_empty() {
            PKey::public_key_from_der(&subject_public_key_info(&self.parameters, &self.point)?)
        } else {
            rsa(&self.modulus, &self.exponent)
        };
        read.ok()
    }

    /// Returns a template of the objects of this class that belong to the key.
    fn related(&self, class: ObjectClass) -> Vec<Attribute> {
        let same = if self.id.is_empty() {
            Attribute::Label(self.label.clone())
        } else {
            Attribute::Id(self.id.clone())
        };
        vec![Attribute::Class(class), same]
    }
}

fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    let rsa = Rsa::from_public_components(BigNum::from_slice(modulus)?, BigNum::from_slice(exponent)?)?;
    PKey::from_rsa(rsa)
}

/// Supported curves: `CKA_EC_PARAMS`, the algorithm of SubjectPublicKeyInfo (RFC 5480 section 2.1.1, RFC 8410 section 3),
/// and the length of a point. Ed25519 has two forms of parameters (PKCS#11 3.0 section 2.3.5).
const CURVES: [(&[u8], &[u8], usize); 5] = [
    (P256, b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07", 65),
    (P384, b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22", 97),
    (P521, b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23", 133),
    (ED25519, ED25519, 32),
    (b"\x13\x0cedwards25519", ED25519, 32),
];
const P256: &[u8] = b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x06\x05\x2b\x81\x04\x00\x22";
const P521: &[u8] = b"\x06\x05\x2b\x81\x04\x00\x23";
const ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

/// Encodes a public key. `CKA_EC_POINT` is the point in an OCTET STRING, or, in some tokens, the point itself.
fn subject_public_key_info(parameters: &[u8], point: &[u8]) -> Option<Vec<u8>> {
    let (_, algorithm, length) = CURVES.iter().find(|(known, ..)| *known == parameters)?;
    let (head, point) = point.split_at_checked(point.len().checked_sub(*length)?)?;
    const OCTET_STRING: u8 = 4;
    let is_wrapped = matches!(head, [OCTET_STRING, _] | [OCTET_STRING, 0x81, _]);
    if !head.is_empty() && !is_wrapped {
        return None;
    }
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 3;
    let key = der(BIT_STRING, &[&[0], point].concat());
    Some(der(SEQUENCE, &[der(SEQUENCE, algorithm), key].concat()))
}

fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    // Each is shorter than 256 bytes.
    let length = contents.len() as u8;
    let head = if length < 0x80 { vec![tag, length] } else { vec![tag, 0x81, length] };
    [&head, contents].concat()
}

#[cfg(test)]
mod tests {
    use super::{P256, subject_public_key_info};
    use boring::{
        ec::{EcGroup, EcKey},
        nid::Nid,
        pkey::PKey,
    };

    #[test]
    fn points_in_both_forms() {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
        let expected = key.public_key_to_der().unwrap();
        let point = &expected[expected.len() - 65..];
        assert_eq!(subject_public_key_info(P256, point).unwrap(), expected);
        assert_eq!(subject_public_key_info(P256, &[&[4, 65], point].concat()).unwrap(), expected);
        assert_eq!(subject_public_key_info(P256, &point[1..]), None);
        assert_eq!(subject_public_key_info(b"\x06\x01\x00", point), None);
    }
}
