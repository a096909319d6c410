//! The YAML front end: reads a file into a plain [`Gateway`], or reports every mistake in it.
//!
//! ```text
//!  text ── tree ──> nodes with lines ── reader + sections (schema) ──> model::Gateway ── sections ──> /config
//!                                            └─────────┴──> Diagnostics (file, line, field, remedy)
//! ```
//!
//! Included files, variables and merge keys are resolved in the tree (`composition`). It opens only these files: certificates are checked when they are loaded, on start and on every reload. The
//! command line reads its values with [`values`](crate::values) and [`enums`](crate::enums) too.
//!
//! A key takes two edits: a field of the model with its default, and an entry in the table of its section
//! (`sections`: `Key::new`, or `Key::at_restart`). Then add the key to
//! `examples/quadrille.yaml`, which the tests walk, and generate the reference again (`reference`; the page's head
//! has the command).

mod checks;
mod composition;
mod document;
mod envoys_form;
mod explanation;
mod fields;
mod foreign;
mod json_schema;
mod reference;
mod restart;
mod schema;
mod sections;
mod shown;
#[cfg(test)]
mod tests;
mod text;
mod unreachable;
mod variables;

pub use document::{ConfigurationFile, Loaded};
pub use envoys_form::is_native;
pub use explanation::explain;
pub use json_schema::json_schema;
pub use reference::{key_policy_reference, reference};
pub use restart::{fixed, needs_restart, show_in_force};
pub use sections::FORWARDING_KEYS;
pub use text::read_text;

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    model::{Gateway, Origin, Place, key_server::Policy},
    reader::{Dialect, Reader},
    yaml::{self, Limits},
};
use composition::Composer;
use serde_json::Value;
use std::path::Path;

/// Reads a configuration file.
///
/// # Errors
/// If the file cannot be read, or has mistakes; the error then has all that could be found.
pub fn load(path: &Path) -> Result<Gateway, Diagnostics> {
    Ok(ConfigurationFile::open(path, None)?.read()?.gateway)
}

/// Reads the policy of a key server.
///
/// # Errors
/// As for [`load`].
pub fn load_key_policy(path: &Path) -> Result<Policy, Diagnostics> {
    parse_key_policy(&read_text(path)?, &path.display().to_string())
}

/// Reads a configuration from text. Errors name `file_name`, and relative paths start at its directory.
///
/// # Errors
/// If there are mistakes; the error then has all that could be found.
pub fn parse(text: &str, file_name: &str) -> Result<Gateway, Diagnostics> {
    document::gateway(text, &mut Composer::new(Origin::file(file_name))).map(|loaded| loaded.gateway)
}

/// Reads the policy of a key server from text.
///
/// # Errors
/// If there are mistakes; the error then has all that could be found.
pub fn parse_key_policy(text: &str, file_name: &str) -> Result<Policy, Diagnostics> {
    let origin = Origin::file(file_name);
    let root = match yaml::read(text, Limits::BY_HAND) {
        Ok(Some(root)) => root,
        Ok(None) => {
            return Err(Diagnostic::new(&Place::field(&origin, 1, ""), sections::EMPTY_POLICY).into());
        }
        Err(error) => return Err(Diagnostic::syntax(&origin, error).into()),
    };
    let reader = Reader::new(origin, Dialect::Strict).with_homes(sections::home_of);
    let read = sections::key_policy(&reader.root(&root, ""));
    reader.finish(read).map(|(policy, _)| policy)
}

/// Returns the configuration in effect, defaults included, as the admin page `/config` shows it: in the form of an
/// equivalent file. Inline key material is shown as `(inline)`.
pub fn show(gateway: &Gateway) -> Value {
    let mut shown = sections::GATEWAY.show(gateway);
    escape(&mut shown);
    shown
}

/// Escapes texts that would be read as variables.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('$') => *text = variables::escaped(text),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(entries) => entries.values_mut().for_each(escape),
        _ => {}
    }
}
