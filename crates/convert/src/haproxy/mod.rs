//! HAProxy: `haproxy.cfg`.
//!
//! ```text
//!  section ──> frontend ──> bind
//!                 ├──> test ──> way ──> routes
//!                 ├──> rules (http-request, http-response)
//!                 └──> backend
//! ```
//!
//! HAProxy selects the first backend whose conditions hold, Quadrille the most specific route. Ways keep HAProxy's order: where
//! a later one would be more specific, a route with the conditions of both leads to the earlier one.

mod backend;
mod bind;
mod criterion;
mod frontend;
mod header_rules;
mod place;
mod rules;
mod section;
mod test;
mod world;

use crate::{draft::Draft, ledger::Ledger, source::Source};
use std::cell::RefCell;
use world::{World, sort_out};

/// Reads and converts a configuration.
///
/// # Errors
/// If it is not in HAProxy's syntax.
pub(crate) fn draft(source: &Source, ledger: &Ledger) -> Result<Draft, String> {
    let sections = section::read(source, ledger)?;
    let draft = RefCell::new(Draft::default());
    let world = World::new(&sections, ledger, &draft, &source.directory);
    for section in &sections {
        match section.kind() {
            "frontend" | "listen" => frontend::convert(section, &world),
            "global" => global(section, &world),
            "defaults" => {
                world.converted(&section.line);
                sort_out(section, &world);
            }
            "backend" => {
                // Its servers are converted where a frontend uses it; lines of its own are noted here.
                world.converted(&section.line);
                sort_out(section, &world);
            }
            "userlist" | "peers" | "program" | "ring" => {
                world.converted(&section.line);
                let known = section
                    .lines
                    .iter()
                    .filter(|line| section.kind() != "userlist" || line.word(0) == "group");
                known.for_each(|line| world.converted(line));
            }
            "resolvers" => resolvers(section, &world),
            kind => {
                let remedy = format!("a section `{kind}` has no equivalent");
                std::iter::once(&section.line)
                    .chain(&section.lines)
                    .for_each(|line| world.refused(line, &remedy));
            }
        }
    }
    Ok(draft.into_inner())
}

fn global(section: &section::Section, world: &World<'_>) {
    world.converted(&section.line);
    for line in &section.lines {
        match line.word(0) {
            "nbthread" => {
                if let Ok(count @ 1..) = line.word(1).parse::<u64>() {
                    world.draft.borrow_mut().top.set("threads", count);
                }
                world.converted(line);
            }
            "log" => world.differs(
                line,
                "the access log goes to standard output, the log of the process to standard error",
            ),
            "maxconn" => world.converted(line),
            "ssl-default-bind-options" | "ssl-default-bind-ciphers" => world.converted(line),
            "ssl-default-bind-ciphersuites" | "ssl-default-bind-curves" => world.converted(line),
            _ => {}
        }
    }
    sort_out(section, world);
}

fn resolvers(section: &section::Section, world: &World<'_>) {
    world.converted(&section.line);
    let mut servers = Vec::new();
    for line in &section.lines {
        world.converted(line);
        if line.word(0) == "nameserver" {
            match line.word(2).parse::<std::net::SocketAddr>() {
                Ok(address) => servers.push(address.to_string()),
                Err(_) => world.refused(line, "name DNS servers by address: `resolver: { servers: [...] }`"),
            }
        }
    }
    if !servers.is_empty() {
        world.draft.borrow_mut().top.inner("resolver").set("servers", servers);
    }
}
