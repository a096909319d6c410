//! Results of HTTP/3.

use std::fmt::Write as _;

use serde::Serialize;

use super::{median, name, ratio, width};
use crate::{
    contestants::Contestant,
    http3::rounds::{Served, Workload},
    rival::Rival,
    statistics::Spread,
};

/// The server that ratios are relative to.
const BASELINE: Rival = Rival::Envoy;

/// Results of one server.
#[derive(Clone, Debug, Serialize)]
pub struct Http3Row {
    /// Description of the workload.
    pub workload: String,
    /// Name of the server.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server per handshake, request or MiB, median of the rounds.
    pub cpu_us: Option<f64>,
    /// Handshakes, requests or MiB per second, median.
    pub per_second: Option<f64>,
    /// CPU time relative to Envoy's in the same round.
    pub to_envoy: Option<Spread>,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Builds the rows of a workload.
pub fn http3_rows(
    workload: Workload,
    contestants: &[Contestant],
    served: &[Result<Served, String>],
) -> Vec<Http3Row> {
    let of = |rival: Rival| contestants.iter().zip(served).find(|(one, _)| one.rival == rival);
    let baseline = of(BASELINE).and_then(|(_, served)| served.as_ref().ok());
    let row = |(contestant, served): (&Contestant, &Result<Served, String>)| {
        let found = served.as_ref().ok();
        let compared = found.zip(baseline).filter(|_| contestant.rival != BASELINE);
        Http3Row {
            workload: workload.to_string(),
            server: contestant.rival.to_string(),
            version: contestant.version.clone().ok(),
            cpu_us: found.and_then(|found| median(&found.cpu_us)),
            per_second: found.and_then(|found| median(&found.per_second)),
            to_envoy: compared.and_then(|(ours, theirs)| Spread::of_ratios(&ours.cpu_us, &theirs.cpu_us)),
            note: match served {
                Ok(served) => served.gave_up.clone(),
                Err(reason) => Some(reason.clone()),
            },
        }
    };
    contestants.iter().zip(served).map(row).collect()
}

/// Formats the table of a workload.
pub fn http3_table(workload: Workload, rows: &[Http3Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let unit = workload.unit();
    let mut table = format!(
        "{workload}\n  {:<width$} {:>16} {:>12}  / envoy\n",
        "server",
        format!("CPU us/{unit}"),
        format!("{unit}s/s")
    );
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (row.cpu_us, row.per_second) {
            (Some(cpu), Some(rate)) => {
                writeln!(table, "  {name:<width$} {cpu:>16.1} {rate:>12.0}  {}", ratio(row.to_envoy.as_ref()))
            }
            _ => Ok(()),
        };
        if let Some(note) = &row.note {
            let _ = writeln!(table, "  {name:<width$} {note}");
        }
    }
    table
}
