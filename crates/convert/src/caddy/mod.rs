//! Caddy: the JSON of `caddy adapt`.
//!
//! ```text
//!  json ──> server ──> handler ──> ways ──> routes
//!                         └── matcher, guard, proxy, placeholder
//! ```
//!
//! A Caddyfile has snippets, macros and directives of modules; Caddy itself expands them to JSON. There, routes are chains of
//! handlers: those that do not respond change the ways of the routes after them.

mod guard;
mod handler;
mod json;
mod matcher;
mod placeholder;
mod proxy;
mod server;

use crate::{draft::Draft, ledger::Ledger, source::Source};
use json::{Json, Notes};
use serde_json::Value;
use std::cell::RefCell;

/// Reads and converts a configuration.
///
/// # Errors
/// If it is not Caddy's JSON.
pub(crate) fn draft(source: &Source, ledger: &Ledger) -> Result<Draft, String> {
    let name = &source.name;
    let value: Value = serde_json::from_str(&source.text).map_err(|error| match is_json(&source.text) {
        true => format!("{name}:{}: {error}", error.line()),
        false => format!("{name}: not JSON; if it is a Caddyfile, {ADAPT}"),
    })?;
    let root = Json { value: &value };
    let apps = root.at(&["apps"]);
    if apps.is_missing() {
        return Err(format!("{name}: no `apps`, so it is not Caddy's configuration; {ADAPT}"));
    }
    let notes = Notes { ledger, file: name };
    let draft = RefCell::new(Draft::default());
    for (name, server) in apps.at(&["http", "servers"]).entries() {
        server::convert(name, server, apps, &notes, &draft);
    }
    for (app, _) in apps.entries().filter(|(app, _)| !["http", "tls"].contains(app)) {
        notes.refused(
            &format!("app {app}"),
            "only `http` and `tls` are converted; `mode: tcp` forwards bytes",
        );
    }
    Ok(draft.into_inner())
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"apps\"")
}

/// The command that makes JSON of a Caddyfile.
const ADAPT: &str =
    "run: caddy adapt --config Caddyfile > caddy.json, then: quadrille convert caddy caddy.json";
