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

pub(crate) use intake::{FRAME_BUDGET, IncomingStream, Intake, Windows};
pub(crate) use metered::Metered;
