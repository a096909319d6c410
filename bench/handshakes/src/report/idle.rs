//! Memory per idle connection.

use std::fmt::Write as _;

use serde::Serialize;

use super::{name, width};
use crate::{
    contestants::Contestant,
    idle::{Before, Held},
};

/// One server's memory per idle connection.
#[derive(Clone, Debug, Serialize)]
pub struct IdleRow {
    /// State in which each connection idled.
    pub scenario: String,
    /// Name of the server.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// Idle connections open while memory was read.
    pub connections: Option<usize>,
    /// Growth of the proportional set size per connection, KiB.
    pub pss_kib_per_connection: Option<f64>,
    /// Growth of the resident set size per connection, KiB.
    pub rss_kib_per_connection: Option<f64>,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Builds the row of `contestant`.
pub fn idle_row(before: Before, contestant: &Contestant, held: Result<Held, String>) -> IdleRow {
    let (held, note) = held.map_or_else(|reason| (None, Some(reason)), |held| (Some(held), None));
    IdleRow {
        scenario: before.to_string(),
        server: contestant.rival.to_string(),
        version: contestant.version.clone().ok(),
        connections: held.map(|held| held.open),
        pss_kib_per_connection: held.map(|held| held.pss_kib),
        rss_kib_per_connection: held.map(|held| held.rss_kib),
        note,
    }
}

/// Formats the table of memory per idle connection.
pub fn idle_table(rows: &[IdleRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "  {:<width$} {:<20} {:>6} {:>13} {:>13}\n",
        "server", "idle", "open", "PSS KiB each", "RSS KiB each"
    );
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (row.connections, row.pss_kib_per_connection, row.rss_kib_per_connection) {
            (Some(open), Some(pss), Some(rss)) => {
                writeln!(table, "  {name:<width$} {:<20} {open:>6} {pss:>13.1} {rss:>13.1}", row.scenario)
            }
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(table, "  {name:<width$} {:<20} {note}", row.scenario)
            }
        };
    }
    table
}
