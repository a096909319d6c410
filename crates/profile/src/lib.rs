//! Cost of HTTPS, measured five ways.
//!
//! - [`load`]: a load generator for handshakes against any HTTPS server, cheap enough that one client core keeps one
//!   server core busy.
//! - [`algorithms`]: rates of this machine by algorithm, as TLS uses them.
//! - [`gpu`]: RSA on the GPU, compared with all CPU cores.
//! - [`handshake`]: cost of each handshake message for a server or a client, on the thread's CPU clock.
//! - [`system`]: CPU use of a running server or client by class, by sampling it.
//!
//! The crate measures; text and charts for the terminal belong to the command line. It does not run in a gateway.

pub mod algorithms;
mod clock;
pub mod gpu;
pub mod handshake;
pub mod load;
pub mod system;
