//! Results, and the table of them.

use std::fmt;

use serde::Serialize;

use super::well_behaved::Seen;
use crate::rival::Protocol;

/// Results of one server beside one misbehaviour.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the server.
    pub server: String,
    /// Name of the misbehaviour.
    pub misbehaviour: &'static str,
    /// Protocol of the origin.
    pub origin: Protocol,
    /// Whether the server authorizes, retries, mirrors and compresses.
    pub filters: bool,
    /// The well-behaved client alone.
    pub alone: Latency,
    /// The well-behaved client beside the misbehaviour.
    pub beside: Latency,
    /// Number of misbehaving connections that were opened.
    pub opened: u64,
    /// Number of times that the server ended or refused a misbehaving connection.
    pub ended: u64,
    /// Resident memory of the server before, at its peak, and after the recovery, in KiB.
    pub memory_kib: [u64; 3],
}

/// Latency of the well-behaved client's requests, from when each was due.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests without a complete response with status 200.
    pub failed: u64,
    /// Median, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// Table whose lines are rows.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Whether it has columns for the origin's protocol and for filters.
    pub with_variants: bool,
}

impl Table {
    /// Returns the first lines.
    pub fn head(self) -> String {
        let variants = if self.with_variants { " origin | filters |" } else { "" };
        let columns = "p50, p99 alone, ms | p50, p99 beside, ms | ratio of p99 | failed | memory MiB: before, peak, \
                       after | closed |";
        let head = format!("| misbehaving clients | server |{variants} {columns}");
        let rule = "---|".repeat(head.matches('|').count() - 1);
        format!("{head}\n|{rule}")
    }

    /// Returns the line of a row.
    pub fn line(self, row: &Row) -> String {
        let [before, peak, after] = row.memory_kib.map(|kib| kib / 1024);
        let filters = if row.filters { "on" } else { "off" };
        let variants =
            if self.with_variants { format!(" {} | {filters} |", row.origin) } else { String::new() };
        format!(
            "| {} | {} |{variants} {} | {} | {:.1} | {} of {} | {before}, {peak}, {after} | {} |",
            row.misbehaviour,
            row.server,
            row.alone,
            row.beside,
            row.beside.p99_ms / row.alone.p99_ms,
            row.beside.failed,
            row.beside.requests,
            row.ended
        )
    }
}

impl Latency {
    pub(super) fn of(seen: &Seen) -> Self {
        let at = |percentile| seen.latency_us.value_at_percentile(percentile) as f64 / 1e3;
        let requests = seen.latency_us.len() + seen.failed;
        Self { requests, failed: seen.failed, p50_ms: at(50.0), p99_ms: at(99.0) }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}, {:.1}", self.p50_ms, self.p99_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_of_the_head() {
        let latency = Latency { requests: 9, failed: 1, p50_ms: 1.0, p99_ms: 2.0 };
        let row = Row {
            server: "a".into(),
            misbehaviour: "b",
            origin: Protocol::Http2,
            filters: true,
            alone: latency,
            beside: latency,
            opened: 3,
            ended: 2,
            memory_kib: [1 << 20; 3],
        };
        for with_variants in [false, true] {
            let table = Table { with_variants };
            let [head, rule] =
                table.head().lines().map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
            for line in [rule, table.line(&row)] {
                assert_eq!(line.matches('|').count(), head.matches('|').count(), "{line}");
            }
            assert_eq!(table.line(&row).contains("| HTTP/2 | on |"), with_variants);
        }
    }
}
