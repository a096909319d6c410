//! What a gateway and a key server do, as plain data, and the YAML files that say it.
//!
//! ```text
//!  text ── yaml: a tree with lines ── file: the YAML front end ──┐
//!                     └────────────── Envoy (another crate) ─────┼──> model
//!  command line ──── values, words ──────────────────────────────┘
//! ```
//!
//! Every front end produces the same [`model`], and whoever serves it reads nothing else. Nothing is opened here but the
//! configuration's own file: no certificate, no socket, no name. What is wrong is said with its place and its remedy.

mod file;
pub mod model;
mod problem;
mod text;
pub mod values;
pub mod words;
pub mod yaml;

pub use file::{
    ConfigError, ConfigErrors, key_policy_reference, load, load_key_policy, parse, parse_key_policy,
    read_text, reference, show,
};
pub use problem::Problem;
pub use text::quote;
