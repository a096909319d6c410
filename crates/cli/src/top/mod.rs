//! `quadrille top`.
//!
//! - `sample`: metrics of one moment, and rates between two.

mod sample;

use crate::{
    columns::{aligned, duration},
    ctl::{Client, Target},
    schema::print,
};
use quadrille_config::values;
use sample::{Sample, Span};
use serde_json::Value;
use std::{
    io::{IsTerminal, stdout},
    num::NonZeroUsize,
    thread::sleep,
    time::{Duration, Instant},
};

/// Show the traffic of a running gateway by upstream, live.
///
/// Reads /metrics and /status of the admin API, as `quadrille ctl` finds it, and shows rates of the last interval: requests,
/// errors, retries, times to the response header. Without a terminal, it prints one report of one interval.
///   quadrille top
///   quadrille top --interval 10s --count 6 > report.txt
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Top {
    #[command(flatten)]
    target: Target,
    /// Time between two reports.
    #[arg(long, value_name = "TIME", value_parser = values::timeout, default_value = "2s")]
    interval: Duration,
    /// Number of reports [default: no limit in a terminal, 1 without].
    #[arg(long, value_name = "N", value_parser = values::count)]
    count: Option<NonZeroUsize>,
}

/// Clears the terminal, and moves the cursor to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

impl Top {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let client = Client::new(self.target)?;
        let is_terminal = stdout().is_terminal();
        let count = self.count.map_or(if is_terminal { usize::MAX } else { 1 }, NonZeroUsize::get);
        let mut before = Sample::read(&client.text("/metrics")?, Instant::now());
        for number in 0..count {
            sleep(self.interval);
            let after = Sample::read(&client.text("/metrics")?, Instant::now());
            let (_, status) = client.json("/status")?;
            let report = report(&status, &Span::between(&before, &after));
            let lead = match is_terminal {
                true => CLEAR,
                false if number > 0 => "\n",
                false => "",
            };
            print(&format!("{lead}{report}"))?;
            before = after;
        }
        Ok(())
    }
}

/// Returns the report of an interval.
fn report(status: &Value, span: &Span<'_>) -> String {
    let uptime = status["uptime_seconds"].as_f64().unwrap_or_default() as u64;
    let per_second = |name: &str| short(span.rate(name, &[]));
    let mut text = format!(
        "quadrille {}, up {}{}\n",
        status["version"].as_str().unwrap_or_default(),
        duration(uptime),
        if status["ready"] == true { "" } else { ", draining" }
    );
    text += &format!(
        "requests {}/s (5xx {}/s, no response {}/s), handshakes {}/s ({}/s failed), {} connections\n\n",
        per_second("quadrille_requests_total"),
        short(span.rate("quadrille_requests_total", &["status=\"5xx\""])),
        short(span.rate("quadrille_requests_total", &["status=\"none\""])),
        per_second("quadrille_handshakes_total"),
        per_second("quadrille_handshake_failures_total"),
        span.value("quadrille_connections", &[]),
    );
    let titles =
        ["UPSTREAM", "REQ/S", "5XX/S", "NONE/S", "RETRY/S", "FAIL/S", "ACTIVE", "P50", "P99", "SERVERS"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let upstreams = status["upstreams"].as_array().map_or(&[][..], Vec::as_slice);
    rows.extend(upstreams.iter().map(|upstream| row(upstream, span)));
    text + &aligned(&rows)
}

fn row(upstream: &Value, span: &Span<'_>) -> Vec<String> {
    let name = upstream["name"].as_str().unwrap_or_default();
    let label = format!("upstream=\"{name}\"");
    let rate = |metric: &str, more: &[&str]| {
        let labels: Vec<_> = [label.as_str()].into_iter().chain(more.iter().copied()).collect();
        short(span.rate(metric, &labels))
    };
    let time =
        |share| span.quantile("quadrille_upstream_seconds", &label, share).map_or("-".to_owned(), seconds);
    let servers = upstream["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let serves = |server: &&Value| {
        server["healthy"] != false && server["ejected"] != true && server["draining"] != true
    };
    vec![
        name.to_owned(),
        rate("quadrille_upstream_requests_total", &[]),
        rate("quadrille_upstream_requests_total", &["status=\"5xx\""]),
        rate("quadrille_upstream_requests_total", &["status=\"none\""]),
        rate("quadrille_upstream_retries_total", &[]),
        rate("quadrille_upstream_connect_failures_total", &[]),
        upstream["counts"]["active"].to_string(),
        time(0.5),
        time(0.99),
        format!("{}/{}", servers.iter().filter(serves).count(), servers.len()),
    ]
}

/// Returns a rate with as many digits as matter.
fn short(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.001 => format!("{:.0}us", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.1}ms", seconds * 1e3),
        seconds => format!("{seconds:.2}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        report,
        sample::{Sample, Span},
    };
    use serde_json::json;
    use std::time::{Duration, Instant};

    #[test]
    fn a_report_has_rates_and_quantiles_by_upstream() {
        let metrics = |count: u32| {
            format!(
                "# TYPE quadrille_requests_total counter\nquadrille_requests_total{{status=\"2xx\"}} {count}\n\
                 quadrille_connections 3\n\
                 quadrille_upstream_requests_total{{upstream=\"app\",status=\"2xx\"}} {count}\n\
                 quadrille_upstream_seconds_bucket{{upstream=\"app\",le=\"0.001\"}} {}\n\
                 quadrille_upstream_seconds_bucket{{upstream=\"app\",le=\"0.01\"}} {count}\n\
                 quadrille_upstream_seconds_bucket{{upstream=\"app\",le=\"+Inf\"}} {count}\n",
                count / 2
            )
        };
        let start = Instant::now();
        let before = Sample::read(&metrics(100), start);
        let after = Sample::read(&metrics(300), start + Duration::from_secs(2));
        let status = json!({
            "version": "1.2.3", "uptime_seconds": 60.0, "ready": true,
            "upstreams": [{"name": "app", "counts": {"active": 2}, "servers": [
                {"healthy": null, "ejected": null, "draining": false}, {"healthy": false, "ejected": null, "draining": false},
            ]}],
        });
        let text = report(&status, &Span::between(&before, &after));
        assert!(text.starts_with("quadrille 1.2.3, up 1m 0s\nrequests 100/s (5xx 0/s"), "{text}");
        let row: Vec<_> = text.lines().last().expect("a row").split_whitespace().collect();
        assert_eq!(row, ["app", "100", "0", "0", "0", "0", "2", "1.0ms", "9.8ms", "1/2"], "{text}");
    }
}
