//! What HTTPS costs, measured five ways.
//!
//! - [`load`]: a load generator for handshakes against any HTTPS server, cheap enough that one client core keeps one
//!   server core busy.
//! - [`algorithms`]: this machine's rates, algorithm by algorithm, as TLS uses them.
//! - [`gpu`]: RSA on the GPU, beside all cores.
//! - [`handshake`]: what a server or a client spends on each message of a handshake, on the thread's CPU clock.
//! - [`system`]: where the CPU of a running server or client goes, by sampling it.
//!
//! It measures, and leaves words and pictures for a terminal to the command line. Nothing of it runs in a gateway.

pub mod algorithms;
mod clock;
pub mod gpu;
pub mod handshake;
pub mod load;
pub mod system;
