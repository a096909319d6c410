//! Certificates that are ordered from a certificate authority by ACME (RFC 8555), kept, and renewed in time.
//!
//! ```text
//!  the model ── Plan ──> Runner ── schedule: which is due? ── order ──> the authority
//!                          │                                   │  challenges
//!                          │                                   └──> Answers <── the gateway's listeners ask
//!                          └── State: account, certificates and keys, in files ──> the gateway reloads
//!                                 └── Fleet: the same in Redis, sealed <──> the other gateways
//! ```
//!
//! It serves nothing: the gateway answers challenges with what is in [`Answers`], and takes certificates from the state
//! directory as it takes any others. What decides by time takes `now`, in seconds since 1970.

mod account;
mod answers;
mod ask;
mod certificate_request;
mod dns_hook;
mod dns_records;
mod error;
mod event;
mod files;
mod fleet;
mod granting;
mod https;
mod issued;
mod keeper;
mod key_servers;
mod on_demand;
mod one_request;
mod order;
mod order_key;
mod plan;
mod progress;
mod runner;
mod schedule;
mod turn;

pub use account::{Reason, revoke};
pub use answers::{Answers, ChallengeKey, TlsAlpnCertificate};
pub use error::AcmeError;
pub use event::Event;
pub use files::StateDirectory;
pub use issued::Issued;
pub use key_servers::KeyServers;
pub use on_demand::{OnDemand, granted};
pub use plan::{Plan, Wanted};
pub use runner::Runner;
pub use schedule::{Validity, Window};

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, in seconds since 1970.
pub type UnixTime = i64;

/// The system's clock.
pub fn unix_now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
