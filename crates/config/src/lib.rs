//! What a gateway and a key server do, as plain data, and the YAML files that say it.
//!
//! ```text
//!  text ── yaml: a tree with lines ── file: the YAML front end ──┐
//!                     └────────────── Envoy (another crate) ─────┼──> model
//!  command line ──── values, words ──────────────────────────────┘
//! ```
//!
//! Every front end produces the same [`model`], and whoever serves it reads nothing else. Nothing is opened here but
//! the configuration's own file: no certificate, no socket, no name. What is wrong is said with its place and its
//! remedy.

pub mod acme_values;
mod allowance;
mod cipher_suites;
mod diagnostic;
mod file;
pub mod model;
mod rate;
mod reader;
pub mod share;
pub mod size;
mod text;
pub mod unix_socket;
pub mod values;
mod warnings;
pub mod words;
pub mod yaml;

pub use allowance::Allowance;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use file::{
    fixed, key_policy_reference, load, load_key_policy, needs_restart, parse, parse_key_policy, read_text,
    reference, show, show_in_force,
};
pub use model::Problem;
pub use reader::{Dialect, Field, Reader};
pub use text::quote;
pub use warnings::Warnings;
