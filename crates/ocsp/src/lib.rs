//! OCSP responses for stapling (RFC 6960, RFC 6066 section 8): fetched, verified, and renewed in time.
//!
//! ```text
//!  certificates ── Staple ──> Runner ── schedule: which is due? ── fetch ──> the authority's responder
//!                    │                                                │
//!                    │                                          check: signature and certificate ID
//!                    └── response(now) <── handshakes                 └──> Staple
//! ```
//!
//! It serves nothing: each handshake takes the current response from a [`Staple`]. Functions that depend on time take
//! `now`, in seconds since 1970.
//!
//! - `inquiry`, `fetch`, `check`, `signature`: the request, and the verification of the response.
//! - `staple`, `kept`, `runner`, `schedule`: current responses, stored and renewed. `schedule` is pure.

mod check;
mod error;
mod fetch;
mod inquiry;
mod kept;
mod runner;
mod schedule;
mod signature;
mod staple;

pub use check::expiry;
pub use error::{Failure, Unaskable};
pub use inquiry::{Inquiry, must_be_stapled};
pub use quadrille_unix_time::{UnixTime, unix_now};
pub use runner::Runner;
pub use schedule::Validity;
pub use staple::{Staple, State};
