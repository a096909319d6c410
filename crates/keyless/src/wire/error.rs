//! What one end tells the other, and what ends a connection.

/// Why an operation has no result, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ErrorCode {
    /// The operation failed.
    #[error("the operation failed")]
    Crypto,
    /// No key has this name, or not for this client.
    #[error("the server has no such key for this client")]
    KeyNotFound,
    /// The server could not read what it needs.
    #[error("the server could not read")]
    Read,
    /// Another version of the protocol.
    #[error("the server speaks another version")]
    Version,
    /// No such operation.
    #[error("the server does not know the operation")]
    BadOpcode,
    /// The operation does not fit the key, or is none that a client may ask for.
    #[error("the operation does not fit the key, or is not allowed")]
    UnexpectedOpcode,
    /// The message is not well formed.
    #[error("the request is not well formed")]
    Format,
    /// Anything else.
    #[error("the server has failed")]
    Internal,
    /// No such certificate.
    #[error("the server has no such certificate")]
    CertificateNotFound,
    /// The request came too late.
    #[error("the request has expired")]
    Expired,
    /// The server's own remote is badly configured.
    #[error("the server is badly configured")]
    Remote,
    /// The client asks for more than it may; only in our own mode.
    #[error("this client asks for more than it may")]
    Limited,
    /// The policy does not allow this client this operation; only in our own mode.
    #[error("the policy does not allow this client the operation")]
    Denied,
    /// The client has withdrawn the operation; only in our own mode.
    #[error("the operation was withdrawn")]
    Withdrawn,
    /// As many keys have been generated as the policy allows; only in our own mode.
    #[error("as many keys have been generated as the policy allows")]
    TooManyKeys,
    /// A code that this version does not know.
    #[error("error {0} of the server")]
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
    /// The error of a byte.
    pub fn from_byte(byte: u8) -> Self {
        CODES.iter().find(|(_, code)| *code == byte).map_or(Self::Other(byte), |(error, _)| *error)
    }

    /// The byte of an error.
    pub fn byte(self) -> u8 {
        match self {
            Self::Other(byte) => byte,
            known => CODES.iter().find(|(error, _)| *error == known).map_or(0x08, |(_, byte)| *byte),
        }
    }

    /// The nearest error that ends other than ours know.
    pub(super) fn compatible(self) -> Self {
        match self {
            Self::Denied => Self::UnexpectedOpcode,
            Self::Limited | Self::Withdrawn | Self::TooManyKeys => Self::Internal,
            known => known,
        }
    }
}

/// What the other end did that no correct one does: the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Neither mode's version.
    #[error("it speaks version {0} of the protocol")]
    Version(u8),
    /// A frame or packet longer than allowed.
    #[error("it sent a frame of {0} bytes, which is too long")]
    TooLong(usize),
    /// Lengths that contradict each other.
    #[error("it sent a frame whose lengths contradict each other")]
    Lengths,
    /// A reply to nothing, or the second to the same request.
    #[error("it answered request {0}, which is not open")]
    UnknownReply(u32),
    /// The same request number twice.
    #[error("it used the number {0} for two requests at the same time")]
    DuplicateRequest(u32),
    /// A message that only the other side may send.
    #[error("it sent a message (opcode {0:#04x}) that is not its to send")]
    WrongSide(u8),
    /// More requests at the same time than allowed.
    #[error("it has more than {0} requests in flight")]
    Window(usize),
}
