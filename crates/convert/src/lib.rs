//! Converters of the configurations of nginx, HAProxy and Caddy to Quadrille's.
//!
//! ```text
//!  nginx.conf ── statements ──┐
//!  haproxy.cfg ── lines ──────┼──> Draft (listeners, routes, upstreams) ── YAML with comments
//!  Caddy's JSON ── values ────┘         └── Ledger: each statement is converted, differs, or is not converted
//! ```
//!
//! A statement without an equivalent is a remark with its line and a remedy. One that guards, such as an access rule, a
//! limit or a client certificate, closes what it guards: its routes respond with an error until an operator decides.
//! Every conversion is read by the configuration's own reader before it is returned.

#![warn(missing_docs)]

mod caddy;
mod conversion;
mod haproxy;
mod nginx;
mod source;
mod ways;

pub use conversion::{Conversion, Language, convert};
pub use quadrille_draft::ledger::{Place, Remark};
pub use source::Source;

use quadrille_draft::{draft, expression, ledger, tls_lists, values, yaml};
