//! Forms of private keys that BoringSSL does not read: PKCS #8 version 2, which is converted, and unsupported curves,
//! which are named.

use crate::error::KeyError;
use zeroize::Zeroizing;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0]` of an ECPrivateKey: its parameters (RFC 5915 section 3).
const PARAMETERS: u8 = 0xa0;

/// `id-ecPublicKey` (RFC 5480 section 2.1.1).
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// Curves that TLS servers have no use for, by the contents of their object identifiers.
const CURVES: &[(&[u8], &str)] = &[
    (&[0x2b, 0x81, 0x04, 0x00, 0x0a], "secp256k1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x20], "secp224k1"),
    (&[0x2b, 0x81, 0x04, 0x00, 0x21], "P-224"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x01], "P-192"),
];

/// Arc of the Brainpool curves (RFC 5639 section 4.1), and the names of its members from 1.
const BRAINPOOL: &[u8] = &[0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01];
const BRAINPOOL_CURVES: [&str; 14] = [
    "brainpoolP160r1",
    "brainpoolP160t1",
    "brainpoolP192r1",
    "brainpoolP192t1",
    "brainpoolP224r1",
    "brainpoolP224t1",
    "brainpoolP256r1",
    "brainpoolP256t1",
    "brainpoolP320r1",
    "brainpoolP320t1",
    "brainpoolP384r1",
    "brainpoolP384t1",
    "brainpoolP512r1",
    "brainpoolP512t1",
];

/// Converts a PKCS #8 key of version 2 (RFC 5958 section 2), which contains its public key, to version 1.
pub(crate) fn version_1(der: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (SEQUENCE, body, []) = element(der)? else { return None };
    let (INTEGER, [1], kept) = element(body)? else { return None };
    let (SEQUENCE, _, rest) = element(kept)? else { return None };
    let (OCTET_STRING, _, rest) = element(rest)? else { return None };
    let kept = kept.get(..kept.len() - rest.len())?;
    let version = [INTEGER, 1, 0];
    let length = u16::try_from(version.len() + kept.len()).ok()?.to_be_bytes();
    let mut converted = Zeroizing::new(Vec::with_capacity(der.len() + 4));
    converted.push(SEQUENCE);
    match length {
        [0, short @ ..=127] => converted.push(short),
        [0, long] => converted.extend([0x81, long]),
        long => converted.extend([&[0x82], &long[..]].concat()),
    }
    converted.extend(version);
    converted.extend(kept);
    Some(converted)
}

/// Returns the reason for which a key in SEC1 or PKCS #8 is not supported, if it is its curve.
pub(crate) fn unsupported_curve(der: &[u8]) -> Option<KeyError> {
    match element(curve(der)?)? {
        (SEQUENCE, ..) => Some(KeyError::ExplicitParameters),
        (OBJECT_IDENTIFIER, id, _) => name(id).map(KeyError::UnsupportedCurve),
        _ => None,
    }
}

/// Returns the parameters of a key on a curve.
fn curve(der: &[u8]) -> Option<&[u8]> {
    let (SEQUENCE, body, _) = element(der)? else { return None };
    let (INTEGER, _, rest) = element(body)? else { return None };
    match element(rest)? {
        (SEQUENCE, algorithm, _) => {
            let (OBJECT_IDENTIFIER, EC_PUBLIC_KEY, parameters) = element(algorithm)? else { return None };
            Some(parameters)
        }
        (OCTET_STRING, _, rest) => match element(rest)? {
            (PARAMETERS, parameters, _) => Some(parameters),
            _ => None,
        },
        _ => None,
    }
}

fn name(id: &[u8]) -> Option<&'static str> {
    if let Some([member]) = id.strip_prefix(BRAINPOOL) {
        return BRAINPOOL_CURVES.get(usize::from(*member).checked_sub(1)?).copied();
    }
    CURVES.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

/// Splits off an element of DER: its tag, its contents, and what follows.
pub(crate) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

#[cfg(test)]
mod tests {
    use super::version_1;

    #[test]
    fn versions_are_converted_with_each_form_of_length() {
        for size in [3, 100, 115, 200, 300] {
            let octets: Vec<u8> =
                [&[0x04, 0x82][..], &u16::to_be_bytes(size), &vec![7; size.into()]].concat();
            let wrapped = |version: u8, rest: &[u8]| {
                let body = [&[2, 1, version, 0x30, 0][..], &octets, rest].concat();
                let length = u16::try_from(body.len()).unwrap().to_be_bytes();
                let header = match length {
                    [0, short @ ..=127] => vec![0x30, short],
                    [0, long] => vec![0x30, 0x81, long],
                    [high, low] => vec![0x30, 0x82, high, low],
                };
                [header, body].concat()
            };
            let converted = version_1(&wrapped(1, &[0x81, 1, 0])).expect("version 2");
            assert_eq!(*converted, wrapped(0, &[]));
            assert!(version_1(&wrapped(0, &[])).is_none() && version_1(&wrapped(1, &[])[1..]).is_none());
        }
    }
}
