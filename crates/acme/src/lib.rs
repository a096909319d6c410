//! ACME client: orders certificates from a certificate authority (RFC 8555), stores them, and renews them in time.
//!
//! ```text
//!  the model ── Plan ──> Runner ── schedule: which is due? ── order ──> the authority
//!                          │                                   │  challenges
//!                          │                                   └──> Answers <── the gateway's listeners
//!                          └── State: account, certificates and keys, in files ──> the gateway reloads
//!                                 └── Fleet: copies in Redis, sealed <──> the other gateways
//! ```
//!
//! The crate does not listen itself: the gateway responds to challenges from [`Answers`], and loads certificates from
//! the state directory like any others. Time-dependent functions take `now`, in seconds since 1970.
//!
//! - `runner`, `keeper`, `plan`, `schedule`: certificates that a configuration requires, and when each is due.
//! - `order`, `account`, `https`, `issued`: one order, from the first request to the validated certificate.
//! - `progress`, `files`: state that survives restarts; `order_lock`, `fleet`: the right to order, and copies for a
//!   fleet.
//! - `answers`, `dns_records`, `dns_hook`: responses to challenges.
//! - `check`: files that settings name, read before they are needed.
//! - `on_demand`, `granting`, `ask`: names that clients request, and the decision of the operator's service.
//! - `order_key`, `key_servers`, `certificate_request`: the keys of orders, and the structures that they sign.

mod account;
mod answers;
mod ask;
mod certificate_request;
mod check;
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
mod order_lock;
mod plan;
mod progress;
mod runner;
mod schedule;

pub use account::{Reason, revoke};
pub use answers::{Answers, ChallengeKey, TlsAlpnCertificate};
pub use check::check;
pub use error::AcmeError;
pub use event::Event;
pub use files::StateDirectory;
pub use issued::Issued;
pub use key_servers::KeyServers;
pub use on_demand::{OnDemand, granted};
pub use plan::{Plan, Wanted};
pub use quadrille_unix_time::{UnixTime, unix_now};
pub use runner::Runner;
pub use schedule::{Validity, Window};
