//! Ticket keys, and when each of them is used.

mod document;
mod ring;
#[cfg(test)]
mod simulation;
mod ticket_key;

pub(crate) use document::{decode, encode};
pub use ring::{Ring, Schedule, Scheduled};
pub use ticket_key::{KeyError, TicketKey};

use std::time::{Duration, SystemTime};

/// Time since the Unix epoch: what machines agree on, but for the skew of their clocks.
pub type UnixTime = Duration;

/// The time now. A clock before 1970 counts as 1970.
pub fn unix_now() -> UnixTime {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
