//! Speed and price of one large body.

use std::fmt::Write as _;

use serde::Serialize;

use super::{median, name, width};
use crate::{bulk::Transfer, contestants::Contestant};

/// One server.
#[derive(Clone, Debug, Serialize)]
pub struct BulkRow {
    /// Name of the server.
    pub server: String,
    /// Its version and that of its TLS library.
    pub version: Option<String>,
    /// Gigabytes (10^9 bytes) of body a second; median of the rounds.
    pub gb_per_second: Option<f64>,
    /// CPU seconds of the server for each gigabyte; median of the rounds.
    pub cpu_seconds_per_gb: Option<f64>,
    /// How much of its core the server used; median of the rounds.
    pub server_busy: Option<f64>,
    /// What was agreed on: version, cipher suite, group, signature.
    pub negotiated: Vec<String>,
    /// Why something is missing.
    pub note: Option<String>,
}

/// One row for each of `contestants`; `transfers` has a result, or the reason why there is none, for each.
pub fn bulk_rows(contestants: &[Contestant], transfers: &[Result<Transfer, String>]) -> Vec<BulkRow> {
    let row = |(contestant, transfer): (&Contestant, &Result<Transfer, String>)| {
        let done = transfer.as_ref().ok();
        BulkRow {
            server: contestant.rival.to_string(),
            version: contestant.version.clone().ok(),
            gb_per_second: done.and_then(|done| median(&done.gb_per_second)),
            cpu_seconds_per_gb: done.and_then(|done| median(&done.cpu_seconds_per_gb)),
            server_busy: done.and_then(|done| median(&done.server_busy)),
            negotiated: done
                .map(|done| done.seen.negotiated.keys().map(ToString::to_string).collect())
                .unwrap_or_default(),
            note: match transfer {
                Ok(done) => done.gave_up.clone(),
                Err(reason) => Some(reason.clone()),
            },
        }
    };
    contestants.iter().zip(transfers).map(row).collect()
}

/// The table.
pub fn bulk_table(rows: &[BulkRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "  {:<width$} {:>8} {:>12} {:>6}  {}\n",
        "server", "GB/s", "CPU s per GB", "core", "agreed on"
    );
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (row.gb_per_second, row.cpu_seconds_per_gb, row.server_busy) {
            (Some(speed), Some(price), Some(busy)) => writeln!(
                table,
                "  {name:<width$} {speed:>8.2} {price:>12.2} {:>5.0}%  {}",
                busy * 100.0,
                row.negotiated.join(", ")
            ),
            _ => writeln!(table, "  {name:<width$} {}", row.note.as_deref().unwrap_or("not measured")),
        };
    }
    table
}
