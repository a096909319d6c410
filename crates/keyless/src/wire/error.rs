//! Error codes in replies, and violations that end a connection.

/// Reason for which an operation has no result, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ErrorCode {
    /// The operation failed.
    #[error("the operation failed")]
    Crypto,
    /// No key has this name, or the client may not use it.
    #[error("the server has no such key for this client")]
    KeyNotFound,
    /// Read error of the server.
    #[error("read error on the server")]
    Read,
    /// Unsupported version of the protocol.
    #[error("the server uses another protocol version")]
    Version,
    /// Unknown operation.
    #[error("the server does not support the operation")]
    BadOpcode,
    /// The operation does not fit the key, or clients may not request it.
    #[error("the operation does not fit the key, or is not allowed")]
    UnexpectedOpcode,
    /// The message is malformed.
    #[error("malformed request")]
    Format,
    /// Any other error.
    #[error("internal error of the server")]
    Internal,
    /// Unknown certificate.
    #[error("the server has no such certificate")]
    CertificateNotFound,
    /// The request came too late.
    #[error("the request has expired")]
    Expired,
    /// The configuration of the server's own remote is invalid.
    #[error("the server's configuration is invalid")]
    Remote,
    /// The client exceeds its limits; batched mode only.
    #[error("the client exceeds its limits")]
    Limited,
    /// The policy does not allow this client the operation; batched mode only.
    #[error("the policy does not allow the client this operation")]
    Denied,
    /// The client has withdrawn the operation; batched mode only.
    #[error("the operation was withdrawn")]
    Withdrawn,
    /// The policy's limit of generated keys is reached; batched mode only.
    #[error("the policy's limit of generated keys is reached")]
    TooManyKeys,
    /// Unknown code.
    #[error("unknown server error {0}")]
    Other(u8),
}

use ErrorCode as E;

const CODES: [(ErrorCode, u8); 15] = [
    (E::Crypto, 0x01),
    (E::KeyNotFound, 0x02),
    (E::Read, 0x03),
    (E::Version, 0x04),
    (E::BadOpcode, 0x05),
    (E::UnexpectedOpcode, 0x06),
    (E::Format, 0x07),
    (E::Internal, 0x08),
    (E::CertificateNotFound, 0x09),
    (E::Expired, 0x0a),
    (E::Remote, 0x0b),
    (E::Limited, 0x40),
    (E::Denied, 0x41),
    (E::Withdrawn, 0x42),
    (E::TooManyKeys, 0x43),
];

impl ErrorCode {
    /// Returns the error of a byte.
    pub fn from_byte(byte: u8) -> Self {
        CODES.iter().find(|(_, code)| *code == byte).map_or(Self::Other(byte), |(error, _)| *error)
    }

    /// Returns the byte of an error.
    pub fn byte(self) -> u8 {
        match self {
            Self::Other(byte) => byte,
            known => CODES.iter().find(|(error, _)| *error == known).map_or(0x08, |(_, byte)| *byte),
        }
    }

    /// Returns the closest error that foreign software knows.
    pub(super) fn compatible(self) -> Self {
        match self {
            Self::Denied => Self::UnexpectedOpcode,
            Self::Limited | Self::Withdrawn | Self::TooManyKeys => Self::Internal,
            known => known,
        }
    }
}

/// Protocol violation by the peer: the connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Version of neither mode.
    #[error("unsupported protocol version {0}")]
    Version(u8),
    /// A frame or packet longer than allowed.
    #[error("frame of {0} bytes exceeds the maximum length")]
    TooLong(usize),
    /// Contradictory lengths.
    #[error("contradictory lengths in a frame")]
    Lengths,
    /// A reply to no request, or the second to the same request.
    #[error("reply to request {0}, which is not open")]
    UnknownReply(u32),
    /// The id of an open request.
    #[error("two open requests have the id {0}")]
    DuplicateRequest(u32),
    /// A message that only the other end may send.
    #[error("message with opcode {0:#04x} is not allowed from this end")]
    WrongSide(u8),
    /// More requests at the same time than allowed.
    #[error("more than {0} requests in flight")]
    Window(usize),
}
