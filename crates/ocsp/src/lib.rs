//! OCSP responses that a server staples to its certificates (RFC 6960, RFC 6066 section 8): asked for, checked, and kept
//! fresh.
//!
//! ```text
//!  certificates ── Staple ──> Runner ── schedule: which is due? ── fetch ──> the authority's responder
//!                    │                                                │
//!                    │                                          check: who signed it, and for what?
//!                    └── response(now) <── handshakes                 └──> Staple
//! ```
//!
//! It serves nothing: a [`Staple`] is asked in each handshake for what it has just now. What decides by time takes `now`,
//! in seconds since 1970.

mod check;
mod error;
mod fetch;
mod inquiry;
mod kept;
mod runner;
mod schedule;
mod signature;
mod staple;

pub use error::{Failure, Unaskable};
pub use inquiry::{Inquiry, must_be_stapled};
pub use runner::Runner;
pub use schedule::Validity;
pub use staple::{Staple, State};

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, in seconds since 1970.
pub type UnixTime = i64;

/// The system's clock.
pub fn unix_now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
