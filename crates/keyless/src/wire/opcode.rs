//! Opcodes, and the corresponding operations of the engine.
//!
//! MD5 with SHA-1 for ECDSA, and SHA-224, have opcodes too, but are not used by the TLS versions that the engine supports.

use super::ErrorCode;
use quadrille_engine::{KeyType, MlDsa, Operation, SignatureScheme};

/// Raw RSA decryption; the padding is kept.
pub const RSA_DECRYPT: u8 = 0x01;
/// Ping.
pub const PING: u8 = 0xf1;
/// Response to a ping.
pub const PONG: u8 = 0xf2;
/// A result.
pub const RESPONSE: u8 = 0xf0;
/// Error.
pub const ERROR: u8 = 0xff;
/// Generate a key.
pub const GENERATE: u8 = 0xe1;
/// Remove a generated key.
pub const REMOVE: u8 = 0xe2;
/// Withdraw a request; batched mode only.
pub const WITHDRAW: u8 = 0xe0;

use SignatureScheme as S;

const SIGNATURES: [(SignatureScheme, u8); 16] = [
    (S::RsaPkcs1Md5Sha1, 0x02),
    (S::RsaPkcs1Sha1, 0x03),
    (S::RsaPkcs1Sha256, 0x05),
    (S::RsaPkcs1Sha384, 0x06),
    (S::RsaPkcs1Sha512, 0x07),
    (S::RsaPssSha256, 0x35),
    (S::RsaPssSha384, 0x36),
    (S::RsaPssSha512, 0x37),
    (S::EcdsaSha1, 0x13),
    (S::EcdsaSha256, 0x15),
    (S::EcdsaSha384, 0x16),
    (S::EcdsaSha512, 0x17),
    (S::Ed25519, 0x18),
    (S::MlDsa(MlDsa::MlDsa44), 0xe4),
    (S::MlDsa(MlDsa::MlDsa65), 0xe5),
    (S::MlDsa(MlDsa::MlDsa87), 0xe6),
];

/// Types of keys that can be generated, by the first byte of the payload.
const KINDS: [(u8, KeyType); 8] = [
    (0x01, KeyType::EcdsaP256),
    (0x02, KeyType::EcdsaP384),
    (0x03, KeyType::Rsa { bits: 2048 }),
    (0x04, KeyType::Rsa { bits: 3072 }),
    (0x05, KeyType::Rsa { bits: 4096 }),
    (0x06, KeyType::MlDsa(MlDsa::MlDsa44)),
    (0x07, KeyType::MlDsa(MlDsa::MlDsa65)),
    (0x08, KeyType::MlDsa(MlDsa::MlDsa87)),
];

/// Maximum length of the reference of a generated key, in bytes.
pub const MAX_REFERENCE: usize = 200;

/// Encodes a generation request: key type and reference. `None` for unsupported types.
pub fn generation(key_type: KeyType, reference: &str) -> Option<Vec<u8>> {
    let (kind, _) = KINDS.iter().find(|(_, known)| *known == key_type)?;
    Some([&[*kind], reference.as_bytes()].concat())
}

/// Decodes a generation request. A reference becomes a part of a file name, and must be valid on every system.
///
/// # Errors
/// [`ErrorCode::Format`] if it does not have that form.
pub fn read_generation(payload: &[u8]) -> Result<(KeyType, &str), ErrorCode> {
    let (kind, reference) = payload.split_first().ok_or(ErrorCode::Format)?;
    let (_, key_type) = KINDS.iter().find(|(known, _)| known == kind).ok_or(ErrorCode::Format)?;
    let good = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    let begins = reference.first().is_some_and(|first| !matches!(first, b'.' | b'-'));
    let is_name = begins && reference.len() <= MAX_REFERENCE && reference.iter().all(good);
    let reference = std::str::from_utf8(reference).ok().filter(|_| is_name).ok_or(ErrorCode::Format)?;
    Ok((*key_type, reference))
}

/// Returns the opcode and the payload of an operation.
pub fn from_operation(operation: &Operation) -> (u8, &[u8]) {
    match operation {
        Operation::Decrypt { ciphertext } => (RSA_DECRYPT, ciphertext),
        Operation::Sign { scheme, digest } => {
            let known = SIGNATURES.iter().find(|(known, _)| known == scheme);
            (known.map_or(ERROR, |(_, opcode)| *opcode), digest)
        }
    }
}

/// Returns the operation of an opcode and a payload. The engine checks whether it fits the key.
///
/// # Errors
/// [`ErrorCode::UnexpectedOpcode`] for opcodes of replies, [`ErrorCode::BadOpcode`] for all others that are unknown.
pub fn operation(opcode: u8, payload: &[u8]) -> Result<Operation, ErrorCode> {
    if opcode == RSA_DECRYPT {
        return Ok(Operation::Decrypt { ciphertext: payload.into() });
    }
    match SIGNATURES.iter().find(|(_, known)| *known == opcode) {
        Some(&(scheme, _)) => Ok(Operation::Sign { scheme, digest: payload.into() }),
        None if matches!(opcode, RESPONSE | ERROR | PONG) => Err(ErrorCode::UnexpectedOpcode),
        None => Err(ErrorCode::BadOpcode),
    }
}

/// Name of an operation in logs and metrics.
pub fn name(opcode: u8) -> &'static str {
    match opcode {
        RSA_DECRYPT => "decrypt",
        _ if SIGNATURES.iter().any(|(_, known)| *known == opcode) => "sign",
        GENERATE => "generate",
        REMOVE => "remove",
        PING => "ping",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_is_made_for_is_a_plain_name_and_nothing_else() {
        for (_, key_type) in KINDS {
            let payload = generation(key_type, "www.example.com.rsa-2048").expect("a kind");
            assert_eq!(read_generation(&payload), Ok((key_type, "www.example.com.rsa-2048")));
        }
        assert_eq!(generation(KeyType::Ed25519, "a"), None);
        let long = "a".repeat(MAX_REFERENCE + 1);
        for reference in [
            "", ".", "..", ".hidden", "-rf", "a/b", "../a", "A", "a b", "a\nb", "a\0", "\u{e4}", "a:b", &long,
        ] {
            let payload = [&[1], reference.as_bytes()].concat();
            assert_eq!(read_generation(&payload), Err(ErrorCode::Format), "{reference:?}");
        }
        for payload in [&b""[..], b"\x00a", b"\x09a", b"\x01\xff"] {
            assert_eq!(read_generation(payload), Err(ErrorCode::Format));
        }
    }
}
