//! nginx: `nginx.conf`, with the files that it includes.
//!
//! ```text
//!  lexer ── statement ──> http ──> server ──> location ──> route (action, access, headers)
//!                    └──> stream, process        └── condition, target, variables, expression
//! ```
//!
//! Servers of one address are one listener, or one for each of their TLS settings. Locations become routes in the order
//! in which nginx selects them: a prefix of characters is a regular expression, one of whole segments a `path`.

mod access;
mod action;
mod condition;
mod headers;
mod http;
mod lexer;
mod listen;
mod location;
mod process;
mod route;
mod scope;
mod server;
mod statement;
mod stream;
mod tables;
mod tls;
mod upstream;
mod world;

use crate::{draft::Draft, ledger::Ledger, source::Source};
use std::cell::RefCell;
use world::World;

/// Reads and converts a configuration.
///
/// # Errors
/// If it is not in nginx's syntax.
pub(crate) fn draft(source: &Source, ledger: &Ledger) -> Result<Draft, String> {
    let statements = statement::read(source, ledger)?;
    let draft = RefCell::new(Draft::default());
    let is_block = |name: &str| statements.iter().any(|one| one.name == name && one.block.is_some());
    if !is_block("http") && !is_block("stream") {
        // A file of `sites-enabled` or `conf.d`, which nginx includes into `http`.
        let world = World::new(&statements, ledger, &draft, &source.directory);
        http::convert(&statements, &world);
        return Ok(draft.into_inner());
    }
    let world = World::new(&statements, ledger, &draft, &source.directory);
    process::convert(&statements, &world);
    for block in &statements {
        let world = World::new(block.statements(), ledger, &draft, &source.directory);
        match block.name.as_str() {
            "http" => http::convert(block.statements(), &world),
            "stream" => stream::convert(block.statements(), &world),
            _ => continue,
        }
        ledger.converted(block.id);
    }
    Ok(draft.into_inner())
}
