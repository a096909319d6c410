//! What goes over the wire, without sending it: bytes become [`Message`]s, and messages become bytes.
//!
//! There are two modes, which say the same things. [`Mode::Compatible`] is what keyless clients and servers in use
//! speak; [`Mode::Batched`] is our own, with many operations in a frame and without padding. `wire.md` beside the
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

/// Requests that a client may have in flight on one connection.
pub const WINDOW: usize = 1024;

/// The random numbers of the tests.
#[cfg(test)]
pub(crate) fn tests_random(seed: u64) -> tests::damage::Random {
    tests::damage::Random(seed)
}
