//! Our generator beside h2load.

use std::fmt::Write as _;

use serde::Serialize;

use super::{median, name, width};
use crate::{
    contestants::Contestant,
    cross_check::{Checked, Side},
    scenario::Scenario,
    statistics::Spread,
};

/// Beyond this the two disagree.
pub(super) const TOLERANCE: f64 = 0.10;

/// What the other generator saw.
#[derive(Clone, Debug, Serialize)]
pub struct CrossCheck {
    /// Its name and version.
    pub generator: String,
    /// nginx without TLS, a new connection for each request.
    pub plain_http: Option<Seen>,
    /// With TLS, one row for each scenario and server.
    pub rows: Vec<CrossRow>,
}

/// One server in one scenario, measured by both generators.
#[derive(Clone, Debug, Serialize)]
pub struct CrossRow {
    /// [`Scenario::id`].
    pub scenario: String,
    /// The same in words.
    pub handshake: String,
    /// Name of the server.
    pub server: String,
    /// Its version and that of its TLS library.
    pub version: Option<String>,
    /// Part of its core's time that the server got, so that h2load could keep it busy.
    pub share: Option<f64>,
    /// What our generator saw.
    pub ours: Option<Seen>,
    /// What h2load saw.
    pub h2load: Option<Seen>,
    /// CPU per handshake by ours against h2load's, round by round.
    pub cpu_ratio: Option<Spread>,
    /// Whether the median of that is within [`TOLERANCE`] of 1.
    pub agrees: Option<bool>,
    /// Why something is missing.
    pub note: Option<String>,
}

/// Medians of the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Seen {
    /// CPU of the server, microseconds per handshake.
    pub cpu_us_per_handshake: f64,
    /// Handshakes a second.
    pub handshakes_per_second: f64,
    /// How much of its core, or of its share of it, the server used.
    pub server_busy: f64,
}

/// One row for each of `contestants`; `checked` has a result, or the reason why there is none, for each.
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
    /// Medians of `side`, if it has any rounds.
    pub fn of_side(side: &Side) -> Option<Self> {
        Some(Self {
            cpu_us_per_handshake: median(&side.cpu_us_per_handshake)?,
            handshakes_per_second: median(&side.handshakes_per_second)?,
            server_busy: median(&side.server_busy)?,
        })
    }
}

/// The table of one scenario.
pub fn cross_table(scenario: &Scenario, rows: &[CrossRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "{scenario}: our generator beside h2load\n  {:<width$} {:>9} {:>9} {:<19} {:>8} {:>8} {:>11} {:>13}\n",
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
