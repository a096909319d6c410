//! What is said, in either mode.

use super::ErrorCode;
use boring::{
    error::ErrorStack,
    pkey::{HasPublic, Id, PKeyRef},
    sha::{Sha1, Sha256},
};
use std::{fmt, net::IpAddr};

/// One message. Payloads are borrowed from where they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Compute something with a key.
    Request(Request<'a>),
    /// What came of a request.
    Reply {
        /// The request's number.
        id: u32,
        /// A signature in its TLS form, a raw RSA result, or why there is none.
        result: Result<&'a [u8], ErrorCode>,
    },
    /// Are you there? The answer has the same number and data.
    Ping {
        /// Any number.
        id: u32,
        /// Any data.
        data: &'a [u8],
    },
    /// Yes.
    Pong {
        /// The ping's number.
        id: u32,
        /// The ping's data.
        data: &'a [u8],
    },
    /// Nobody waits for this request any more; it is answered nevertheless. Only in our own mode.
    Withdraw {
        /// The request's number.
        id: u32,
    },
}

/// Longest payload of a message, so that it fits both modes with all that goes with it, in bytes.
pub const MAX_PAYLOAD: usize = 48 * 1024;

/// Something has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A message.
    Message(Message<'a>),
    /// A message that is not well formed, though its end is known: answer it with this error, and go on.
    Malformed {
        /// Its number.
        id: u32,
        /// What is wrong.
        error: ErrorCode,
    },
}

/// A private-key operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Chosen by the client, different from those of its open requests.
    pub id: u32,
    /// With which key.
    pub key: KeyName,
    /// What to do: see [`opcode`](super::opcode).
    pub opcode: u8,
    /// The digest, for Ed25519 the message, or the ciphertext.
    pub payload: &'a [u8],
    /// What some servers choose keys by; only in compatible mode.
    pub hints: Hints<'a>,
}

/// By what a key is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyName {
    /// The subject key identifier.
    pub ski: Option<Ski>,
    /// SHA-256 of an RSA modulus in upper-case hexadecimal; only in compatible mode.
    pub modulus: Option<[u8; 32]>,
}

impl From<Ski> for KeyName {
    fn from(ski: Ski) -> Self {
        Self { ski: Some(ski), modulus: None }
    }
}

/// What the gateway knows of the connection that the operation is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// The server name that the client has asked for.
    pub sni: Option<&'a str>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The address that the client has connected to.
    pub server: Option<IpAddr>,
}

/// The subject key identifier: SHA-1 of the public key's bits (RFC 5280 section 4.2.1.2, method 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ski(pub [u8; 20]);

impl Ski {
    /// Of a public key, or of a private key's public half.
    ///
    /// # Errors
    /// If BoringSSL cannot encode the key.
    pub fn from_key(key: &PKeyRef<impl HasPublic>) -> Result<Self, ErrorStack> {
        let der = key.public_key_to_der()?;
        let mut sha = Sha1::new();
        sha.update(public_key_bits(&der).unwrap_or_default());
        Ok(Self(sha.finish()))
    }

    /// Reads what [`Display`](fmt::Display) writes; colons between bytes are allowed.
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

/// The other name of an RSA key: SHA-256 of its modulus in upper-case hexadecimal.
pub(crate) fn modulus_digest(key: &PKeyRef<impl HasPublic>) -> Option<[u8; 32]> {
    if key.id() != Id::RSA {
        return None;
    }
    let hex = key.rsa().ok()?.n().to_hex_str().ok()?.to_ascii_uppercase();
    let mut sha = Sha256::new();
    sha.update(hex.as_bytes());
    Some(sha.finish())
}

/// The contents of the BIT STRING in a DER `SubjectPublicKeyInfo`, without the octet that counts unused bits.
fn public_key_bits(spki: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    let (info, _) = der_value(spki, SEQUENCE)?;
    let (_, rest) = der_value(info, SEQUENCE)?;
    let (bits, _) = der_value(rest, BIT_STRING)?;
    bits.get(1..)
}

/// The value of the first element, which must have this tag, and what follows it.
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
