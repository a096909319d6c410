//! Ticket keys and their schedule.

mod document;
mod ring;
#[cfg(test)]
mod simulation;
mod ticket_key;

pub(crate) use document::{decode, encode};
pub use ring::{Ring, Schedule, Scheduled};
pub use ticket_key::{KeyError, TicketKey};

use std::time::Duration;

/// Time since the Unix epoch, which machines agree on except for clock skew.
pub type UnixTime = Duration;
