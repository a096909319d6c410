//! nginx's module for asynchronous handshakes, in Debian's unmodified nginx.

mod batches;
mod client;
mod failures;
mod kinds;
mod server;
mod soak;

pub(crate) use client::Client;
pub(crate) use server::{Configuration, Nginx, rsa_site};
