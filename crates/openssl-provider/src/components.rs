//! Keys as the numbers that OpenSSL passes between providers.

use crate::{
    error::{Failure, Reason},
    key::ProviderKey,
    params::{Answer, Builder, Params, Value},
};
use boring::{
    bn::{BigNum, BigNumContext},
    ec::{EcGroup, EcGroupRef, EcKey, EcPoint, PointConversionForm},
    nid::Nid,
    pkey::{PKey, PKeyRef, Public},
    rsa::Rsa,
};
use quadrille_engine::KeyType;
use std::ffi::CStr;

/// A key type, as OpenSSL names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Rsa,
    Ec,
}

impl Family {
    pub(crate) fn for_key_type(key: KeyType) -> Option<Self> {
        match key {
            KeyType::Rsa { .. } => Some(Self::Rsa),
            KeyType::EcdsaP256 | KeyType::EcdsaP384 | KeyType::EcdsaP521 => Some(Self::Ec),
            KeyType::Ed25519 | KeyType::MlDsa(_) => None,
        }
    }

    /// Returns the name of the key management.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::Rsa => c"RSA",
            Self::Ec => c"EC",
        }
    }
}

/// A number or a name that belongs to a public key.
pub(crate) enum Component {
    Large(Vec<u8>),
    Bytes(Vec<u8>),
    Text(&'static CStr),
}

impl Component {
    pub(crate) fn answer(&self) -> Answer<'_> {
        match self {
            Self::Large(number) => Answer::Large(number),
            Self::Bytes(bytes) => Answer::Bytes(bytes),
            Self::Text(text) => Answer::Text(text),
        }
    }
}

/// Returns the public components of a key, by their names in OpenSSL.
pub(crate) fn public_numbers(key: &ProviderKey) -> Result<Vec<(&'static CStr, Component)>, Failure> {
    let pkey = key.public().pkey();
    if let KeyType::Rsa { .. } = key.key_type() {
        let rsa = pkey.rsa()?;
        return Ok(vec![
            (c"n", Component::Large(rsa.n().to_vec())),
            (c"e", Component::Large(rsa.e().to_vec())),
        ]);
    }
    let point = point(pkey)?;
    let (x, y) = point[1..].split_at(point.len() / 2);
    Ok(vec![
        (c"group", Component::Text(group_name(key.key_type())?)),
        (c"qx", Component::Large(x.to_vec())),
        (c"qy", Component::Large(y.to_vec())),
        (c"pub", Component::Bytes(point.clone())),
        (c"encoded-pub-key", Component::Bytes(point.clone())),
    ])
}

/// Returns the parameters from which another provider builds the public key.
pub(crate) fn export(key: &ProviderKey, with_public: bool) -> Result<Builder, Failure> {
    let wanted = |name: &CStr| match name.to_bytes() {
        b"group" => true,
        b"n" | b"e" | b"pub" => with_public,
        _ => false,
    };
    let numbers = public_numbers(key)?.into_iter().filter(|(name, _)| wanted(name));
    Ok(numbers.fold(Builder::default(), |list, (name, component)| match component {
        Component::Large(number) => list.large(name, &number),
        Component::Bytes(bytes) => list.bytes(name, &bytes),
        Component::Text(text) => list.text(name, text),
    }))
}

/// Creates a key from the parameters that another provider exported.
pub(crate) fn import(family: Family, with_private: bool, params: Params<'_>) -> Result<ProviderKey, Failure> {
    match family {
        Family::Rsa => import_rsa(with_private, params),
        Family::Ec => import_ec(with_private, params),
    }
}

fn import_rsa(with_private: bool, params: Params<'_>) -> Result<ProviderKey, Failure> {
    let number =
        |name: &CStr| params.get(name).and_then(Value::large).map(|bytes| BigNum::from_slice(&bytes));
    let needed = |name: &CStr| number(name).ok_or_else(|| incomplete(name))?.map_err(Failure::from);
    let (n, e) = (needed(c"n")?, needed(c"e")?);
    if !with_private || params.get(c"d").is_none() {
        return ProviderKey::public_only(PKey::from_rsa(Rsa::from_public_components(n, e)?)?);
    }
    let rsa = Rsa::from_private_components(
        n,
        e,
        needed(c"d")?,
        needed(c"rsa-factor1")?,
        needed(c"rsa-factor2")?,
        needed(c"rsa-exponent1")?,
        needed(c"rsa-exponent2")?,
        needed(c"rsa-coefficient1")?,
    )?;
    if params.get(c"rsa-factor3").is_some() {
        return Err(Failure::new(Reason::UnsupportedKey, "RSA with more than two primes"));
    }
    ProviderKey::local(PKey::from_rsa(rsa)?)
}

fn import_ec(with_private: bool, params: Params<'_>) -> Result<ProviderKey, Failure> {
    let name = params.get(c"group").and_then(Value::text).ok_or_else(|| incomplete(c"group"))?;
    let group = EcGroup::from_curve_name(curve(name)?)?;
    let private = params.get(c"priv").and_then(Value::large).filter(|_| with_private);
    let private = private.map(|bytes| BigNum::from_slice(&bytes)).transpose()?;
    let mut context = BigNumContext::new()?;
    let public = match (params.get(c"pub").and_then(Value::bytes), &private) {
        (Some(bytes), _) => EcPoint::from_bytes(&group, bytes, &mut context)?,
        (None, Some(private)) => {
            let mut point = EcPoint::new(&group)?;
            point.mul_generator(&group, private, &mut context)?;
            point
        }
        (None, None) => return Err(incomplete(c"pub")),
    };
    match private {
        Some(private) => {
            let key = EcKey::from_private_components(&group, &private, &public)?;
            key.check_key()?;
            ProviderKey::local(PKey::from_ec_key(key)?)
        }
        None => ProviderKey::public_only(PKey::from_ec_key(EcKey::from_public_key(&group, &public)?)?),
    }
}

/// Encodes the point uncompressed (SEC 1 section 2.3.3).
fn point(pkey: &PKeyRef<Public>) -> Result<Vec<u8>, Failure> {
    let key = pkey.ec_key()?;
    let group: &EcGroupRef = key.group();
    let mut context = BigNumContext::new()?;
    Ok(key.public_key().to_bytes(group, PointConversionForm::UNCOMPRESSED, &mut context)?)
}

fn curve(name: &str) -> Result<Nid, Failure> {
    match name {
        "prime256v1" | "P-256" | "secp256r1" => Ok(Nid::X9_62_PRIME256V1),
        "secp384r1" | "P-384" => Ok(Nid::SECP384R1),
        "secp521r1" | "P-521" => Ok(Nid::SECP521R1),
        other => Err(Failure::new(
            Reason::UnsupportedKey,
            format!("curve {other}; supported: P-256, P-384, P-521"),
        )),
    }
}

fn group_name(key: KeyType) -> Result<&'static CStr, Failure> {
    match key {
        KeyType::EcdsaP256 => Ok(c"prime256v1"),
        KeyType::EcdsaP384 => Ok(c"secp384r1"),
        KeyType::EcdsaP521 => Ok(c"secp521r1"),
        KeyType::Rsa { .. } | KeyType::Ed25519 | KeyType::MlDsa(_) => Err(Reason::UnsupportedKey.into()),
    }
}

fn incomplete(name: &CStr) -> Failure {
    Failure::new(Reason::UnsupportedKey, format!("the key parameters lack `{}`", name.to_string_lossy()))
}
