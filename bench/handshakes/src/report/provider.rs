//! Results of servers with the provider in their OpenSSL, compared with themselves without it.

use std::fmt::Write as _;

use serde::Serialize;

use super::{median, ratio, width};
use crate::{
    provider::{Contender, Pair},
    rounds::Measured,
    statistics::Spread,
};

/// One server and one kind of handshake. Values that could not be measured are absent, and `note` gives the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProviderRow {
    /// Kind of handshake.
    pub handshake: String,
    /// Name of the server, and its workers.
    pub server: String,
    /// Medians without the provider.
    pub alone: Medians,
    /// Medians with the provider; the key server counts too.
    pub with_provider: Medians,
    /// CPU per handshake with the provider relative to without, in the same round.
    pub cpu_ratio: Option<Spread>,
    /// Ratio of the median latencies.
    pub p50_ratio: Option<Spread>,
    /// Ratio of the 99th percentiles.
    pub p99_ratio: Option<Spread>,
    /// Failed connections, of both.
    pub failed: u64,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Medians {
    /// CPU time per handshake, microseconds.
    pub cpu_us_per_handshake: Option<f64>,
    /// Handshakes per second.
    pub handshakes_per_second: Option<f64>,
    /// Median time from connect to the end of the handshake, microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile of that time.
    pub p99_us: Option<f64>,
}

/// All results of the provider.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProviderRows {
    /// Handshakes at the servers' maximum rate.
    pub busy: Vec<ProviderRow>,
    /// Handshakes at a low rate, with an idle server for each.
    pub quiet: Vec<ProviderRow>,
}

/// Builds the rows of one kind of handshake.
pub fn provider_rows(handshake: &str, pairs: &[Pair], missing: &[(Contender, String)]) -> Vec<ProviderRow> {
    let named = |contender: &Contender| ProviderRow {
        handshake: handshake.to_owned(),
        server: contender.to_string(),
        ..ProviderRow::default()
    };
    let measured = pairs.iter().map(|Pair { contender, alone, with_provider }| ProviderRow {
        alone: Medians::of_rounds(alone),
        with_provider: Medians::of_rounds(with_provider),
        cpu_ratio: Spread::of_ratios(&with_provider.cpu_us_per_handshake, &alone.cpu_us_per_handshake),
        p50_ratio: Spread::of_ratios(&with_provider.p50_us, &alone.p50_us),
        p99_ratio: Spread::of_ratios(&with_provider.p99_us, &alone.p99_us),
        failed: alone.seen.failed() + with_provider.seen.failed(),
        note: [with_provider, alone]
            .into_iter()
            .find_map(|measured| measured.gave_up.clone().or_else(|| measured.seen.failure())),
        ..named(contender)
    });
    let missing = missing
        .iter()
        .map(|(contender, reason)| ProviderRow { note: Some(reason.clone()), ..named(contender) });
    measured.chain(missing).collect()
}

impl Medians {
    fn of_rounds(measured: &Measured) -> Self {
        Self {
            cpu_us_per_handshake: median(&measured.cpu_us_per_handshake),
            handshakes_per_second: median(&measured.handshakes_per_second),
            p50_us: median(&measured.p50_us),
            p99_us: median(&measured.p99_us),
        }
    }
}

/// Formats CPU per handshake of busy servers.
pub fn provider_table(rows: &[ProviderRow]) -> String {
    let mut table = String::new();
    let name = |row: &ProviderRow| format!("{}: {}", row.handshake, row.server);
    let names: Vec<String> = rows.iter().map(name).collect();
    let width = width(&names);
    let _ = writeln!(
        table,
        "  {:<width$} {:>10} {:>10}  {:<18} {:>10} {:>10} {:>7}",
        "", "CPU us", "+ provider", "ratio", "per s", "+ provider", "failed"
    );
    for (row, name) in rows.iter().zip(&names) {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
        let _ = writeln!(
            table,
            "  {name:<width$} {:>10} {:>10}  {:<18} {:>10} {:>10} {:>7}{}",
            number(row.alone.cpu_us_per_handshake),
            number(row.with_provider.cpu_us_per_handshake),
            ratio(row.cpu_ratio.as_ref()),
            number(row.alone.handshakes_per_second),
            number(row.with_provider.handshakes_per_second),
            row.failed,
            row.note.as_ref().map_or_else(String::new, |note| format!("  {note}"))
        );
    }
    table
}

/// Formats latencies of idle servers.
pub fn latency_table(rows: &[ProviderRow]) -> String {
    let mut table = String::new();
    let names: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.handshake, row.server)).collect();
    let width = width(&names);
    let _ = writeln!(
        table,
        "  {:<width$} {:>8} {:>10}  {:<18} {:>8} {:>10}  {:<18}",
        "", "p50 us", "+ provider", "ratio", "p99 us", "+ provider", "ratio"
    );
    for (row, name) in rows.iter().zip(&names) {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
        let _ = writeln!(
            table,
            "  {name:<width$} {:>8} {:>10}  {:<18} {:>8} {:>10}  {:<18}{}",
            number(row.alone.p50_us),
            number(row.with_provider.p50_us),
            ratio(row.p50_ratio.as_ref()),
            number(row.alone.p99_us),
            number(row.with_provider.p99_us),
            ratio(row.p99_ratio.as_ref()),
            row.note.as_ref().map_or_else(String::new, |note| format!("  {note}"))
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rival::Rival;

    #[test]
    fn ratios_are_those_of_one_round() {
        let contender = Contender { rival: Rival::Nginx, workers: 8 };
        let measured = |cpu: [f64; 2], p50: f64| Measured {
            cpu_us_per_handshake: cpu.map(Some).to_vec(),
            p50_us: vec![Some(p50)],
            ..Measured::default()
        };
        let pair = Pair {
            contender,
            alone: measured([1000.0, 2000.0], 500.0),
            with_provider: measured([700.0, 1400.0], 550.0),
        };
        let missing = [(Contender { rival: Rival::Haproxy, workers: 1 }, "it is not there".to_owned())];
        let rows = provider_rows("TLS 1.3", &[pair], &missing);
        assert_eq!(rows[0].cpu_ratio.map(|spread| spread.median), Some(0.7));
        assert_eq!(rows[0].p50_ratio.map(|spread| spread.median), Some(1.1));
        let table = provider_table(&rows);
        assert!(table.contains("TLS 1.3: nginx, 8 workers") && table.contains("0.70"), "{table}");
        assert!(table.contains("it is not there"), "{table}");
        assert!(latency_table(&rows).contains("1.10"));
    }
}
