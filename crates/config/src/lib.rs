//! Configuration of the gateway and the key server, as plain data, and the YAML files that express it.
//!
//! ```text
//!  text ── yaml: a tree with lines ── file: the YAML front end ──┐
//!                     └────────────── Envoy (another crate) ─────┼──> model
//!  command line ──── values, enums ──────────────────────────────┘
//! ```
//!
//! Every front end produces the same [`model`], and the servers read nothing else. This crate opens only the
//! configuration's own files: no certificate, no socket, no name. Mistakes are reported with their place and a remedy.

pub mod acme_values;
mod budget;
mod cipher_suites;
mod diagnostic;
pub mod enums;
mod file;
pub mod fraction;
pub mod log_format;
pub mod model;
pub mod pkcs11_uri;
mod rate;
mod reader;
pub mod size;
pub mod srv_name;
mod suggest;
pub mod unix_socket;
pub mod values;
mod warnings;
pub mod yaml;

pub use budget::Allowance;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use file::{
    ConfigurationFile, FORWARDING_KEYS, Loaded, explain, fixed, is_native, json_schema, key_policy_reference,
    load, load_key_policy, needs_restart, parse, parse_key_policy, read_text, reference, show, show_in_force,
};
pub use model::Problem;
pub use reader::{Dialect, Field, Reader};
pub use suggest::quote;
pub use warnings::Warnings;
