//! What HTTPS costs, measured three ways.
//!
//! - [`load`]: a load generator for handshakes against any HTTPS server, cheap enough that one client core keeps one
//!   server core busy.
//!
//! It measures, and leaves words and pictures for a terminal to the command line. Nothing of it runs in a gateway.

pub mod load;
