//! Received data of HTTP/2 connections, towards clients and upstreams: what an exchange leaves unread stays with that
//! exchange.
//!
//! h2 queues received DATA frames one by one until they are read. A queued frame costs a few hundred bytes and holds
//! its read buffer, however small it is, and h2 closes the connection with all its streams when many small frames wait.
//! Therefore a connection is read in portions (`metered`): after each, the frames that exchanges have left unread are
//! moved to them (`intake`), with small ones copied together. The stream's window bounds the data of an exchange, and
//! the connection's window has room for all streams, so that an exchange that is not read stalls no other.
//!
//! - `intake`: the count of unread data, and the streams of a connection.
//! - `metered`: the reader of a connection.

mod intake;
mod metered;

use std::time::Duration;

pub(crate) use intake::{FRAME_BUDGET, IncomingStream, Intake, Windows};
pub(crate) use metered::Metered;

/// Maximum number of streams reset here that a connection remembers, and the time for which it does: data that the
/// peer had sent before it received the reset is ignored. Many streams end so at once: refused uploads, and downloads
/// that clients cancel.
pub(crate) const MOST_REMEMBERED: usize = 2048;
pub(crate) const REMEMBERED_FOR: Duration = Duration::from_secs(2);

/// Maximum number of resets that a peer causes by its errors, in the life of a connection. Frames for forgotten streams
/// are among them. The resets that a peer does not read take at most a few MiB.
pub(crate) const MOST_ERRORS: usize = 8192;
