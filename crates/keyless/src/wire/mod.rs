//! What goes over the wire, without sending it: bytes become [`Message`]s, and messages become bytes.
//!
//! There are two modes, which say the same things. [`Mode::Compatible`] is what keyless clients and servers in use speak;
//! [`Mode::Batched`] is our own, with many operations in a frame and without padding. `wire.md` beside the sources
//! describes both.

mod batched;
mod compatible;
mod error;
mod message;
pub mod opcode;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use error::{ErrorCode, Violation};
pub(crate) use message::modulus_digest;
pub use message::{Hints, KeyName, Message, Request, Ski};
pub use reader::{Incoming, Reader};
pub use writer::Writer;

/// How messages are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One operation a packet, padded to 1 KiB; what keyless clients and servers in use speak.
    Compatible,
    /// Many operations a frame; between ends of ours.
    Batched,
}

impl Mode {
    /// The mode of a connection without ALPN, by the first byte that the client sends: both modes begin with their version.
    pub fn of_first_byte(byte: u8) -> Option<Self> {
        match byte {
            compatible::MAJOR => Some(Self::Compatible),
            batched::VERSION => Some(Self::Batched),
            _ => None,
        }
    }
}

/// As logs and metrics name it.
impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compatible => "compatible",
            Self::Batched => "batched",
        })
    }
}

/// ALPN (RFC 7301) name of [`Mode::Batched`]. Without it, a connection is in [`Mode::Compatible`].
pub const ALPN: &str = "quadrille-keys/1";

/// Requests that a client may have in flight on one connection.
pub const WINDOW: usize = 1024;

/// Longest payload of a message, so that it fits both modes with all that goes with it, in bytes.
pub const MAX_PAYLOAD: usize = 48 * 1024;

/// The random numbers of the tests.
#[cfg(test)]
pub(crate) fn tests_random(seed: u64) -> tests::damage::Random {
    tests::damage::Random(seed)
}
