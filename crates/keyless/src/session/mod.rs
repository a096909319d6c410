//! Both ends of a connection without I/O: received bytes and the time go in, bytes to send and events come out. The
//! driver of a session owns the socket and the clock, so that tests simulate both.

mod client;
#[cfg(test)]
mod client_tests;
mod error;
mod keep_alive;
mod operation;
mod requests;
mod server;
#[cfg(test)]
mod server_tests;

pub use client::{ClientEvent, ClientSession};
pub use error::SessionError;
pub use keep_alive::KeepAlive;
pub use operation::RemoteOperation;
pub use requests::{Completion, Outcome};
pub(crate) use server::{ReceivedRequest, ServerEvent, ServerSession};
