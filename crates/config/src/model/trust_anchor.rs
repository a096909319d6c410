//! Trust anchor identifiers of certificate chains (draft-ietf-tls-trust-anchor-ids-06).

use super::Problem;
use std::{fmt, str::FromStr};

/// The source of a chain's trust anchor identifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TrustAnchor {
    /// The certificate properties in the file of the chain (section 7).
    Properties,
    /// This identifier.
    Id(TrustAnchorId),
}

/// A trust anchor identifier (section 4): an object identifier relative to the arc of private enterprise numbers, in
/// DER without tag and length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrustAnchorId(Box<[u8]>);

impl TrustAnchorId {
    /// The maximum length in bytes, in BoringSSL.
    const LONGEST: usize = 32;

    /// Returns the identifier with these bytes, if they are one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_end = |byte: &u8| byte & 0x80 == 0;
        let is_minimal = |component: &[u8]| component[0] != 0x80;
        let valid = bytes.len() <= Self::LONGEST
            && bytes.last().is_some_and(is_end)
            && bytes.split_inclusive(is_end).all(is_minimal);
        valid.then(|| Self(bytes.into()))
    }

    /// Returns the bytes, at least one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reads the components in decimal, separated by dots.
impl FromStr for TrustAnchorId {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut bytes = Vec::new();
        for component in text.split('.') {
            let digits = !component.is_empty() && component.bytes().all(|byte| byte.is_ascii_digit());
            let is_canonical = digits && (component == "0" || !component.starts_with('0'));
            let value = component.parse::<u64>().ok().filter(|_| is_canonical);
            push_component(&mut bytes, value.ok_or_else(invalid)?);
        }
        Self::from_bytes(&bytes).ok_or_else(invalid)
    }
}

impl fmt::Display for TrustAnchorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, component) in self.0.split_inclusive(|byte| byte & 0x80 == 0).enumerate() {
            let dot = if index == 0 { "" } else { "." };
            let shown: Option<u64> = component.iter().try_fold(0_u64, |value, byte| {
                value.checked_mul(1 << 7).map(|shifted| shifted | u64::from(byte & 0x7f))
            });
            match shown {
                Some(value) => write!(f, "{dot}{value}")?,
                None => write!(f, "{dot}(large)")?,
            }
        }
        Ok(())
    }
}

/// Appends a component in base 128, most significant byte first.
fn push_component(bytes: &mut Vec<u8>, value: u64) {
    let length = (u64::BITS - value.leading_zeros()).div_ceil(7).max(1);
    for index in (0..length).rev() {
        let more = if index == 0 { 0 } else { 0x80 };
        let [low, ..] = (value >> (7 * index)).to_le_bytes();
        bytes.push(low & 0x7f | more);
    }
}

fn invalid() -> Problem {
    Problem::new("not a trust anchor identifier", "write numbers separated by dots, such as `32473.1`")
}

#[cfg(test)]
mod tests {
    use super::TrustAnchorId;

    /// Identifiers of the draft, and the limits of components.
    #[test]
    fn identifiers_are_relative_object_identifiers() {
        for (text, bytes) in [
            ("32473.1", &[0x81, 0xfd, 0x59, 0x01][..]),
            ("0", &[0]),
            ("127.128", &[0x7f, 0x81, 0x00]),
            ("18446744073709551615", &[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        ] {
            let id: TrustAnchorId = text.parse().expect(text);
            assert_eq!(id.as_bytes(), bytes, "{text}");
            assert_eq!(id.to_string(), text);
            assert_eq!(TrustAnchorId::from_bytes(bytes), Some(id));
        }
    }

    #[test]
    fn other_texts_and_bytes_are_refused() {
        let long = ["128"; 17].join(".");
        for text in [
            "",
            ".",
            "1.",
            ".1",
            "1..2",
            "01",
            "+1",
            "-1",
            "1 .2",
            "a",
            "18446744073709551616",
            long.as_str(),
        ] {
            assert!(text.parse::<TrustAnchorId>().is_err(), "{text}");
        }
        assert!(["128"; 16].join(".").parse::<TrustAnchorId>().is_ok());
        for bytes in [&[][..], &[0x80], &[0x81], &[1, 0x81], &[0x80, 1], &[1, 0x80, 1], &[1; 33]] {
            assert_eq!(TrustAnchorId::from_bytes(bytes), None, "{bytes:x?}");
        }
    }
}
