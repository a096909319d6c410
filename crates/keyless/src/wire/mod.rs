//! Wire format without I/O: converts bytes to [`Message`]s and back.
//!
//! The two modes carry the same messages. [`Mode::Compatible`] is the protocol of existing keyless clients and
//! servers; [`Mode::Batched`] is our own, with many operations in a frame and without padding. `wire.md` beside the
//! sources describes both.

mod batched;
mod compatible;
mod error;
mod message;
mod mode;
pub mod opcode;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use error::{ErrorCode, Violation};
pub(crate) use message::modulus_digest;
pub use message::{Hints, Incoming, KeyName, MAX_PAYLOAD, Message, Request, Ski};
pub use mode::Mode;
pub use reader::Reader;
pub use writer::Writer;

/// ALPN (RFC 7301) name of [`Mode::Batched`]. Without it, a connection is in [`Mode::Compatible`].
pub const ALPN: &str = "quadrille-keys/1";

/// Maximum number of open requests of a client on one connection.
pub const WINDOW: usize = 1024;

/// Random numbers of the tests.
#[cfg(test)]
pub(crate) fn tests_random(seed: u64) -> tests::damage::Random {
    tests::damage::Random(seed)
}
