//! Opcodes, and the operations of the engine that they stand for.
//!
//! MD5 with SHA-1 for ECDSA, and SHA-224, have opcodes too, but no TLS version that the engine knows uses them.

use super::ErrorCode;
use quadrille_engine::{Operation, SignatureScheme};

/// Raw RSA decryption; the padding stays on.
pub const RSA_DECRYPT: u8 = 0x01;
/// Are you there?
pub const PING: u8 = 0xf1;
/// Yes.
pub const PONG: u8 = 0xf2;
/// A result.
pub const RESPONSE: u8 = 0xf0;
/// No result, and why.
pub const ERROR: u8 = 0xff;
/// Nobody waits any more; only in our own mode.
pub const WITHDRAW: u8 = 0xe0;

use SignatureScheme as S;

const SIGNATURES: [(SignatureScheme, u8); 13] = [
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
];

/// The opcode and the payload of an operation.
pub fn from_operation(operation: &Operation) -> (u8, &[u8]) {
    match operation {
        Operation::Decrypt { ciphertext } => (RSA_DECRYPT, ciphertext),
        Operation::Sign { scheme, digest } => {
            let known = SIGNATURES.iter().find(|(known, _)| known == scheme);
            (known.map_or(ERROR, |(_, opcode)| *opcode), digest)
        }
    }
}

/// The operation of an opcode and a payload. Whether it fits the key is for the engine to check.
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

/// What logs and metrics call an operation.
pub fn name(opcode: u8) -> &'static str {
    match opcode {
        RSA_DECRYPT => "decrypt",
        _ if SIGNATURES.iter().any(|(_, known)| *known == opcode) => "sign",
        PING => "ping",
        _ => "unknown",
    }
}
