//! Session resumption: tickets and sessions, and the lifetime of a session.
//!
//! - `sessions`: BoringSSL's callbacks for ticket keys and stored sessions.
//! - `session_clock`: tolerance for the clocks of other gateways.

pub(crate) mod session_clock;
pub(super) mod sessions;
