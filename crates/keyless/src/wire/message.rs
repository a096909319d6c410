//! Messages of both modes.

use super::ErrorCode;
use boring::{
    error::ErrorStack,
    pkey::{HasPublic, Id, PKeyRef},
    sha::{Sha1, Sha256},
};
use std::{fmt, net::IpAddr};

/// Message. Payloads borrow the buffer from which they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Request for a private-key operation.
    Request(Request<'a>),
    /// Reply to a request.
    Reply {
        /// Id of the request.
        id: u32,
        /// A signature in its TLS form, a raw RSA result, or an error.
        result: Result<&'a [u8], ErrorCode>,
    },
    /// Ping. The pong has the same id and data.
    Ping {
        /// Any id.
        id: u32,
        /// Any data.
        data: &'a [u8],
    },
    /// Response to a ping.
    Pong {
        /// Id of the ping.
        id: u32,
        /// Data of the ping.
        data: &'a [u8],
    },
    /// Withdrawal of a request, which still gets a reply; batched mode only.
    Withdraw {
        /// Id of the request.
        id: u32,
    },
}

/// Maximum payload of a message, which fits both modes with all other fields, in bytes.
pub const MAX_PAYLOAD: usize = 48 * 1024;

/// Received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A message.
    Message(Message<'a>),
    /// A malformed message with a known end: reply with this error, and continue.
    Malformed {
        /// Id of the message.
        id: u32,
        /// Error to reply with.
        error: ErrorCode,
    },
}

/// A private-key operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Chosen by the client, different from those of its open requests.
    pub id: u32,
    /// Name of the key.
    pub key: KeyName,
    /// Opcode: see [`opcode`](super::opcode).
    pub opcode: u8,
    /// The digest, for Ed25519 and ML-DSA the message, or the ciphertext.
    pub payload: &'a [u8],
    /// Information by which some servers choose keys; compatible mode only.
    pub hints: Hints<'a>,
}

/// Name by which a key is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyName {
    /// The subject key identifier.
    pub ski: Option<Ski>,
    /// SHA-256 of an RSA modulus in upper-case hexadecimal; compatible mode only.
    pub modulus: Option<[u8; 32]>,
}

impl From<Ski> for KeyName {
    fn from(ski: Ski) -> Self {
        Self { ski: Some(ski), modulus: None }
    }
}

/// Properties of the connection for which the operation is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// Server name (SNI) sent by the client.
    pub sni: Option<&'a str>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Address to which the client connected.
    pub server: Option<IpAddr>,
}

/// Subject key identifier: SHA-1 of the public key's bits (RFC 5280 section 4.2.1.2, method 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ski(pub [u8; 20]);

impl Ski {
    /// Computes the identifier of a public key, or of a private key's public half.
    ///
    /// # Errors
    /// If BoringSSL cannot encode the key.
    pub fn from_key(key: &PKeyRef<impl HasPublic>) -> Result<Self, ErrorStack> {
        let der = key.public_key_to_der()?;
        let mut sha = Sha1::new();
        sha.update(public_key_bits(&der).unwrap_or_default());
        Ok(Self(sha.finish()))
    }

    /// Parses the output of [`Display`](fmt::Display); colons between bytes are allowed.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let mut ski = [0; 20];
        if digits.len() != 2 * ski.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        for (byte, pair) in ski.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(ski))
    }
}

impl fmt::Display for Ski {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Ski {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Alternative name of an RSA key: SHA-256 of its modulus in upper-case hexadecimal.
pub(crate) fn modulus_digest(key: &PKeyRef<impl HasPublic>) -> Option<[u8; 32]> {
    if key.id() != Id::RSA {
        return None;
    }
    let hex = key.rsa().ok()?.n().to_hex_str().ok()?.to_ascii_uppercase();
    let mut sha = Sha256::new();
    sha.update(hex.as_bytes());
    Some(sha.finish())
}

/// Returns the contents of the BIT STRING in a DER `SubjectPublicKeyInfo`, without the octet that counts unused bits.
fn public_key_bits(spki: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    let (info, _) = der_value(spki, SEQUENCE)?;
    let (_, rest) = der_value(info, SEQUENCE)?;
    let (bits, _) = der_value(rest, BIT_STRING)?;
    bits.get(1..)
}

/// Returns the value of the first element, which must have this tag, and the rest.
fn der_value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
