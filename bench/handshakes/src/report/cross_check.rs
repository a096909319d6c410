//! Results of our generator compared with h2load.

use std::fmt::Write as _;

use serde::Serialize;

use super::{median, name, width};
use crate::{
    contestants::Contestant,
    cross_check::{Checked, Side},
    scenario::Scenario,
    statistics::Spread,
};

/// Maximum deviation at which the two agree.
pub(super) const TOLERANCE: f64 = 0.10;

/// Results of the other generator.
#[derive(Clone, Debug, Serialize)]
pub struct CrossCheck {
    /// Name and version of the generator.
    pub generator: String,
    /// nginx without TLS, a new connection for each request.
    pub plain_http: Option<Seen>,
    /// Results with TLS, one row for each scenario and server.
    pub rows: Vec<CrossRow>,
}

/// One server in one scenario, measured by both generators.
#[derive(Clone, Debug, Serialize)]
pub struct CrossRow {
    /// [`Scenario::id`].
    pub scenario: String,
    /// Description of the scenario.
    pub handshake: String,
    /// Name of the server.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// Fraction of its core's time that the server got, so that h2load could keep it busy.
    pub share: Option<f64>,
    /// Results of our generator.
    pub ours: Option<Seen>,
    /// Results of h2load.
    pub h2load: Option<Seen>,
    /// CPU per handshake of our generator relative to h2load's, round by round.
    pub cpu_ratio: Option<Spread>,
    /// Whether the median of that is within [`TOLERANCE`] of 1.
    pub agrees: Option<bool>,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Medians of the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Seen {
    /// CPU of the server, microseconds per handshake.
    pub cpu_us_per_handshake: f64,
    /// Handshakes per second.
    pub handshakes_per_second: f64,
    /// Fraction of its core, or of its share of it, that the server used.
    pub server_busy: f64,
}

/// Builds one row for each of `contestants`; `checked` has a result, or the reason that it is missing, for each.
pub fn cross_rows(
    scenario: &Scenario,
    contestants: &[Contestant],
    checked: &[Result<Checked, String>],
) -> Vec<CrossRow> {
    let row = |(contestant, checked): (&Contestant, &Result<Checked, String>)| {
        let done = checked.as_ref().ok();
        let cpu_ratio = done.and_then(|done| {
            Spread::of_ratios(&done.ours.cpu_us_per_handshake, &done.theirs.cpu_us_per_handshake)
        });
        CrossRow {
            scenario: scenario.id(),
            handshake: format!("TLS {} {}", scenario.version.number(), scenario.key),
            server: contestant.rival.to_string(),
            version: contestant.version.clone().ok(),
            share: done.map(|done| done.share),
            ours: done.and_then(|done| Seen::of_side(&done.ours)),
            h2load: done.and_then(|done| Seen::of_side(&done.theirs)),
            agrees: cpu_ratio.map(|ratio| (ratio.median - 1.0).abs() <= TOLERANCE),
            cpu_ratio,
            note: match checked {
                Ok(done) => done.gave_up.clone(),
                Err(reason) => Some(reason.clone()),
            },
        }
    };
    contestants.iter().zip(checked).map(row).collect()
}

impl Seen {
    /// Returns the medians of `side`, if it has any rounds.
    pub fn of_side(side: &Side) -> Option<Self> {
        Some(Self {
            cpu_us_per_handshake: median(&side.cpu_us_per_handshake)?,
            handshakes_per_second: median(&side.handshakes_per_second)?,
            server_busy: median(&side.server_busy)?,
        })
    }
}

/// Formats the table of one scenario.
pub fn cross_table(scenario: &Scenario, rows: &[CrossRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "{scenario}: our generator and h2load\n  {:<width$} {:>9} {:>9} {:<19} {:>8} {:>8} {:>11} {:>13}\n",
        "server", "ours us", "h2load us", " ratio", "ours /s", "h2l. /s", "busy (ours)", "busy (h2load)"
    );
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (&row.ours, &row.h2load) {
            (Some(ours), Some(theirs)) => writeln!(
                table,
                "  {name:<width$} {:>5.0}% {:>9.0} {:>9.0}  {:<18} {:>8.0} {:>8.0} {:>10.0}% {:>12.0}%",
                row.share.unwrap_or(1.0) * 100.0,
                ours.cpu_us_per_handshake,
                theirs.cpu_us_per_handshake,
                super::ratio(row.cpu_ratio.as_ref()),
                ours.handshakes_per_second,
                theirs.handshakes_per_second,
                ours.server_busy * 100.0,
                theirs.server_busy * 100.0
            ),
            _ => writeln!(table, "  {name:<width$} {}", row.note.as_deref().unwrap_or("not measured")),
        };
    }
    table
}
