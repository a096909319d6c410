//! The page's section on requests on open connections.

use std::fmt::Write as _;

use super::cell::in_cell;
use crate::{
    report::{ProxiedRow, Ratios, RequestFindings, RequestRow, ratio},
    requests::workload::Workload,
    rival::{Job, Rival},
};

pub(super) fn request_section(found: &Result<RequestFindings, String>) -> String {
    let mut text = String::from("## Requests on open connections\n\n");
    let RequestFindings { generator, requests, handshakes } = match found {
        Ok(found) => found,
        Err(reason) => return text + &format!("Not measured: {reason}.\n\n"),
    };
    let _ = writeln!(
        text,
        "Every server forwards the requests to the same plain nginx, over HTTP/1.1 connections that it keeps open; that nginx \
         and the client ({generator}) share the other core and do not count. P-256 certificate, TLS 1.3, X25519, AES-128-GCM. \
         Latency is from the start of a request to the end of its response. Where a server does not use its whole core, \
         the other core was the limit: then compare the CPU.\n"
    );
    text += &summary(requests, "CPU us per request (relative to nginx)", false);
    text += &summary(requests, "CPU s per GB of bodies (relative to nginx)", true);
    text += &proxied(handshakes);
    requests
        .chunk_by(|a, b| a.workload == b.workload)
        .fold(text, |text, rows| text + &one_workload(rows[0].workload, rows))
}

/// Formats one row for each server, one column for each HTTP workload without a fixed rate.
fn summary(rows: &[RequestRow], title: &str, downloads: bool) -> String {
    let wanted = |row: &&RequestRow| {
        let Workload { protocol, per_second, .. } = row.workload;
        protocol.job() == Job::Answer && row.workload.is_download() == downloads && per_second.is_none()
    };
    let rows: Vec<&RequestRow> = rows.iter().filter(wanted).collect();
    let columns: Vec<&[&RequestRow]> = rows.chunk_by(|a, b| a.workload == b.workload).collect();
    let Some(first) = columns.first() else { return String::new() };
    let heads: Vec<String> = columns.iter().map(|rows| rows[0].workload.title()).collect();
    let mut text = head(title, &heads);
    for RequestRow { server, .. } in *first {
        let of_server = |rows: &&[&RequestRow]| {
            let row = rows.iter().find(|row| row.server == *server);
            row.map_or_else(|| "-".to_owned(), |row| against_nginx(price(row), &row.cpu_ratios))
        };
        let cells: Vec<String> = columns.iter().map(of_server).collect();
        let _ = writeln!(text, "| {server} | {} |", cells.join(" | "));
    }
    text + "\n"
}

/// Formats the results of a handshake, one request and the end of the connection.
fn proxied(rows: &[ProxiedRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["served directly", "forwarded to the upstream", "/ haproxy", "/ envoy"];
    let title = "A full P-256 handshake with one request, 32 clients: CPU us (relative to nginx)";
    let mut text = head(title, &heads.map(str::to_owned));
    for row in rows {
        let us = |us: Option<f64>| us.map(|us| format!("{us:.0}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.server,
            against_nginx(us(row.fixed_cpu_us), &row.fixed_ratios),
            against_nginx(us(row.proxied_cpu_us), &row.proxied_ratios),
            ratio(row.proxied_ratios.get(&Rival::Haproxy.to_string())),
            ratio(row.proxied_ratios.get(&Rival::Envoy.to_string())),
        );
    }
    text + &notes(rows.iter().map(|row| (&row.server, &row.note))) + "\n"
}

/// Formats all results of one workload.
fn one_workload(workload: Workload, rows: &[RequestRow]) -> String {
    let baselines = workload.protocol.baselines();
    let price_head = if workload.is_download() { "CPU s per GB" } else { "CPU us" };
    let speed_head = if workload.is_download() { "GB/s" } else { "per second" };
    let mut heads = vec![price_head.to_owned()];
    heads.extend(baselines.iter().map(|rival| format!("/ {rival}")));
    heads.extend([speed_head, "core", "p50 us", "p99 us"].map(str::to_owned));
    // Without a fixed rate, latency is determined by the rate reached.
    let at_a_rate = workload.per_second.is_some();
    if at_a_rate {
        heads.extend(["p50 / nginx", "p99 / nginx"].map(str::to_owned));
    }
    let mut text = head(&workload.to_string(), &heads);
    for row in rows {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
        let mut cells = vec![price(row).unwrap_or_else(|| "-".to_owned())];
        cells.extend(baselines.iter().map(|rival| ratio(row.cpu_ratios.get(&rival.to_string()))));
        cells.push(match row.gb_per_second.filter(|_| workload.is_download()) {
            Some(speed) => format!("{speed:.2}"),
            None => number(row.requests_per_second),
        });
        cells.push(number(row.server_busy.map(|busy| busy * 100.0)) + " %");
        cells.extend([row.p50_us, row.p99_us].map(number));
        if at_a_rate {
            let nginx = Rival::Nginx.to_string();
            cells.extend([&row.p50_ratios, &row.p99_ratios].map(|ratios| ratio(ratios.get(&nginx))));
        }
        let _ = writeln!(text, "| {} | {} |", row.server, cells.join(" | "));
    }
    text + &notes(rows.iter().map(|row| (&row.server, &row.note))) + "\n"
}

fn head(title: &str, heads: &[String]) -> String {
    format!("{title}\n\n| server | {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len()))
}

fn price(row: &RequestRow) -> Option<String> {
    if row.workload.is_download() {
        row.cpu_seconds_per_gb.map(|seconds| format!("{seconds:.2}"))
    } else {
        row.cpu_us_per_request.map(|us| format!("{us:.1}"))
    }
}

fn against_nginx(price: Option<String>, ratios: &Ratios) -> String {
    let against = ratios.get(&Rival::Nginx.to_string()).map(|spread| format!(" ({:.2})", spread.median));
    price.map_or_else(|| "-".to_owned(), |price| price + &against.unwrap_or_default())
}

/// Formats the reasons for missing values, below a table.
fn notes<'a>(notes: impl Iterator<Item = (&'a String, &'a Option<String>)>) -> String {
    let lines: String = notes
        .filter_map(|(server, note)| Some(format!("- {server}: {}\n", in_cell(note.as_deref()?))))
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{contestants::Contestant, report::request_rows, requests::rounds::Served};

    #[test]
    fn a_summary_against_nginx_and_a_table_for_each_workload() {
        let contestants = [Rival::Nginx, Rival::Haproxy, Rival::Quadrille].map(|rival| Contestant {
            rival,
            program: PathBuf::new(),
            version: Ok("1".into()),
        });
        let served = |us: f64| Served {
            cpu_us_per_request: vec![Some(us)],
            requests_per_second: vec![Some(10_000.0)],
            server_busy: vec![Some(0.9)],
            p50_us: vec![Some(us * 2.0)],
            p99_us: vec![Some(us * 4.0)],
            gave_up: None,
        };
        let results = [Ok(served(20.0)), Err("it ended | at once".into()), Ok(served(30.0))];
        let [http1, _, http2, _] = Workload::REQUESTS;
        let workloads = [http1, http1.at(5000.0), http2, Workload::DOWNLOADS[0]];
        let found = RequestFindings {
            generator: "h2load 1".into(),
            requests: workloads
                .into_iter()
                .flat_map(|one| request_rows(one, &contestants, &results))
                .collect(),
            handshakes: Vec::new(),
        };
        let text = request_section(&Ok(found));
        assert!(text.contains("| server | HTTP/1.1, 1400 B | HTTP/2, 1400 B |"), "{text}");
        assert!(text.contains("| quadrille | 30.0 (1.50) | 30.0 (1.50) |"), "{text}");
        assert!(text.contains("| haproxy | - | - |"), "{text}");
        assert!(
            text.contains("| quadrille | 30.0 | 1.50 | - | - | - | 10000 | 90 % | 60 | 120 |\n"),
            "{text}"
        );
        assert!(text.contains("| 60 | 120 | 1.50 | 1.50 |\n"), "at a fixed rate: {text}");
        assert!(text.contains("- haproxy: it ended / at once\n"), "{text}");
        assert!(text.contains("CPU s per GB of bodies (relative to nginx)"), "{text}");
    }
}
