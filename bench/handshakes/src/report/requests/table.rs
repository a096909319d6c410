//! Tables for a terminal.

use std::fmt::Write as _;

use super::row::{ProxiedRow, Ratios, RequestRow};
use crate::{
    report::{name, ratio, width},
    requests::workload::{Protocol, Workload},
};

/// Formats the table of one workload.
pub fn request_table(workload: Workload, rows: &[RequestRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let against = workload.protocol.baselines();
    let heads: String = against.iter().map(|rival| format!(" {:<18}", format!("/ {rival}"))).collect();
    let [price, speed] = if workload.is_download() { ["CPU s/GB", "GB/s"] } else { ["CPU us", "per s"] };
    let mut table = format!(
        "{workload}\n  {:<width$} {price:>8} {heads} {speed:>8} {:>5} {:>8} {:>8}\n",
        "server", "core", "p50 us", "p99 us"
    );
    for (row, name) in rows.iter().zip(&names) {
        let [price, speed] = if workload.is_download() {
            [row.cpu_seconds_per_gb, row.gb_per_second].map(|value| value.map(|value| format!("{value:.2}")))
        } else {
            let price = row.cpu_us_per_request.map(|us| format!("{us:.1}"));
            [price, row.requests_per_second.map(|rate| format!("{rate:.0}"))]
        };
        let (Some(price), Some(speed)) = (price, speed) else {
            let _ = writeln!(table, "  {name:<width$} {}", row.note.as_deref().unwrap_or("not measured"));
            continue;
        };
        let _ = writeln!(
            table,
            "  {name:<width$} {price:>8} {} {speed:>8} {:>4.0}% {:>8.0} {:>8.0}",
            columns(workload.protocol, &row.cpu_ratios),
            row.server_busy.unwrap_or_default() * 100.0,
            row.p50_us.unwrap_or_default(),
            row.p99_us.unwrap_or_default()
        );
    }
    table
}

/// Formats the table of handshakes with one request.
pub fn proxied_table(rows: &[ProxiedRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let heads: String =
        Protocol::Http1.baselines().iter().map(|rival| format!(" {:<18}", format!("/ {rival}"))).collect();
    let mut table = format!("  {:<width$} {:>9} {:>10} {heads}\n", "server", "fixed us", "proxied us");
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (row.fixed_cpu_us, row.proxied_cpu_us) {
            (Some(fixed), Some(proxied)) => writeln!(
                table,
                "  {name:<width$} {fixed:>9.0} {proxied:>10.0} {}",
                columns(Protocol::Http1, &row.proxied_ratios)
            ),
            _ => writeln!(table, "  {name:<width$} {}", row.note.as_deref().unwrap_or("not measured")),
        };
    }
    table
}

fn columns(protocol: Protocol, ratios: &Ratios) -> String {
    let column = |baseline: String| format!(" {:<18}", ratio(ratios.get(&baseline)));
    protocol.baselines().iter().map(|rival| column(rival.to_string())).collect()
}
