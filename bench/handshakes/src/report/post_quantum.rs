//! Full handshakes with ML-DSA-44 certificates, beside P-256 in the same rounds, as a table for the terminal and as JSON.

use std::{collections::BTreeMap, fmt, fmt::Write as _};

use serde::Serialize;

use super::{median, name, ratio, width};
use crate::{rival::Rival, rounds::Measured, scenario::KeyKind, statistics::Spread};

/// A server with one kind of key.
#[derive(Clone, Debug)]
pub struct Served {
    /// The server.
    pub rival: Rival,
    /// Kind of its certificate's key.
    pub key: KeyKind,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.rival, self.key)
    }
}

/// One server with one kind of key. Values that could not be measured are absent, and `note` gives the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PostQuantumRow {
    /// Name of the server, and kind of key.
    pub server: String,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server's processes per handshake, microseconds; median of the rounds.
    pub cpu_us_per_handshake: Option<f64>,
    /// CPU per handshake relative to the same server with P-256, in the same round.
    pub against_p256: Option<Spread>,
    /// CPU per handshake relative to the server on rustls with ML-DSA-44.
    pub against_rustls: Option<Spread>,
    /// Handshakes per second; median of the rounds.
    pub handshakes_per_second: Option<f64>,
    /// Median time from connect to the end of the handshake, microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile of that time.
    pub p99_us: Option<f64>,
    /// Negotiated parameters: version, cipher suite, group, signature.
    pub negotiated: Vec<String>,
    /// Connections that failed.
    pub failed: u64,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Builds the rows: those that were measured, then those that are missing, with the reason.
pub fn post_quantum_rows(
    measured: &[(Served, Measured)],
    missing: &[(Served, String)],
) -> Vec<PostQuantumRow> {
    let cpu: BTreeMap<String, &[Option<f64>]> = measured
        .iter()
        .map(|(served, measured)| (served.to_string(), &measured.cpu_us_per_handshake[..]))
        .collect();
    let ratios = |ours: &Measured, rival: Rival, key: KeyKind| {
        let theirs = cpu.get(&Served { rival, key, version: None }.to_string())?;
        Spread::of_ratios(&ours.cpu_us_per_handshake, theirs)
    };
    let named = |served: &Served| PostQuantumRow {
        server: served.to_string(),
        version: served.version.clone(),
        ..PostQuantumRow::default()
    };
    let measured = measured.iter().map(|(served, measured)| PostQuantumRow {
        cpu_us_per_handshake: median(&measured.cpu_us_per_handshake),
        against_p256: ratios(measured, served.rival, KeyKind::P256),
        against_rustls: ratios(measured, Rival::Rustls, KeyKind::MlDsa44),
        handshakes_per_second: median(&measured.handshakes_per_second),
        p50_us: median(&measured.p50_us),
        p99_us: median(&measured.p99_us),
        negotiated: measured.seen.negotiated.keys().map(ToString::to_string).collect(),
        failed: measured.seen.failed(),
        note: measured.gave_up.clone().or_else(|| measured.seen.failure()),
        ..named(served)
    });
    let missing =
        missing.iter().map(|(served, reason)| PostQuantumRow { note: Some(reason.clone()), ..named(served) });
    measured.chain(missing).collect()
}

/// Formats the table.
pub fn post_quantum_table(rows: &[PostQuantumRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "  {:<width$} {:>7}  {:<18} {:<18} {:>6} {:>8} {:>8} {:>7}\n",
        "", "CPU us", "/ own P-256", "/ rustls ML-DSA-44", "per s", "p50 us", "p99 us", "failed"
    );
    for (row, name) in rows.iter().zip(&names) {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
        let _ = writeln!(
            table,
            "  {name:<width$} {:>7}  {:<18} {:<18} {:>6} {:>8} {:>8} {:>7}  {}{}",
            number(row.cpu_us_per_handshake),
            ratio(row.against_p256.as_ref()),
            ratio(row.against_rustls.as_ref()),
            number(row.handshakes_per_second),
            number(row.p50_us),
            number(row.p99_us),
            row.failed,
            row.negotiated.join(", "),
            row.note.as_deref().unwrap_or_default()
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_own_p256_and_to_rustls() {
        let served = |rival, key| Served { rival, key, version: Some("1".into()) };
        let measured =
            |cpu: [f64; 2]| Measured { cpu_us_per_handshake: cpu.map(Some).to_vec(), ..Measured::default() };
        let rows = post_quantum_rows(
            &[
                (served(Rival::Quadrille, KeyKind::MlDsa44), measured([120.0, 240.0])),
                (served(Rival::Quadrille, KeyKind::P256), measured([100.0, 200.0])),
                (served(Rival::Rustls, KeyKind::MlDsa44), measured([240.0, 480.0])),
            ],
            &[(served(Rival::Nginx, KeyKind::MlDsa44), "it cannot read the key".into())],
        );
        let medians = |row: &PostQuantumRow| {
            [row.against_p256, row.against_rustls].map(|spread| spread.map(|spread| spread.median))
        };
        assert_eq!(medians(&rows[0]), [Some(1.2), Some(0.5)]);
        assert_eq!(medians(&rows[2]), [None, Some(1.0)]);
        let table = post_quantum_table(&rows);
        assert!(
            table.contains("quadrille, ML-DSA-44 1") && table.contains("it cannot read the key"),
            "{table}"
        );
    }
}
