//! What the experiments found, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{
    idle::{Before, Held},
    rival::Rival,
    rounds::{Contestant, Measured},
    scenario::Scenario,
    statistics::Spread,
};

/// One server in one scenario. What could not be measured is absent, and `note` says why.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HandshakeRow {
    /// [`Scenario::id`].
    pub scenario: String,
    /// Name of the server.
    pub server: String,
    /// Its version and that of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server's processes per full handshake, microseconds; median of the rounds.
    pub cpu_us_per_handshake: Option<f64>,
    /// Median, least and greatest of that over the rounds.
    pub cpu_us_spread: Option<Spread>,
    /// CPU per handshake against nginx in the same round; median of the rounds.
    pub ratio_to_nginx: Option<f64>,
    /// Median, least and greatest of that over the rounds.
    pub ratio_to_nginx_spread: Option<Spread>,
    /// The same against Envoy.
    pub ratio_to_envoy: Option<f64>,
    /// Median, least and greatest of that over the rounds.
    pub ratio_to_envoy_spread: Option<Spread>,
    /// Full handshakes (each with its requests) a second; median of the rounds.
    pub handshakes_per_second: Option<f64>,
    /// How much of its core the server used; median of the rounds. Well under 1 with many clients means that
    /// something else was the limit.
    pub server_busy: Option<f64>,
    /// From connect to the end of the handshake, median, microseconds.
    pub p50_us: Option<u64>,
    /// The same, 99th percentile.
    pub p99_us: Option<u64>,
    /// From connect to the last byte of the last response, median, microseconds.
    pub response_p50_us: Option<u64>,
    /// The same, 99th percentile.
    pub response_p99_us: Option<u64>,
    /// Handshakes that succeeded, all of them full.
    pub full: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Sessions or tickets handed out in spite of resumption being off.
    pub tickets: u64,
    /// What was agreed on: version, cipher suite, group, signature.
    pub negotiated: Vec<String>,
    /// Why something is missing.
    pub note: Option<String>,
}

/// The rows of one scenario. `measured` has a result, or the reason why there is none, for each of `contestants`.
pub fn handshake_rows(
    scenario: &Scenario,
    contestants: &[Contestant],
    measured: &[Result<Measured, String>],
) -> Vec<HandshakeRow> {
    let cpu_of = |rival: Rival| {
        let index = contestants.iter().position(|contestant| contestant.rival == rival)?;
        Some(measured[index].as_ref().ok()?.cpu_us_per_handshake.clone())
    };
    let (nginx, envoy) = (cpu_of(Rival::Nginx), cpu_of(Rival::Envoy));
    contestants
        .iter()
        .zip(measured)
        .map(|(contestant, measured)| {
            let row = HandshakeRow {
                scenario: scenario.id(),
                server: contestant.rival.to_string(),
                version: contestant.version.clone().ok(),
                ..HandshakeRow::default()
            };
            match measured {
                Ok(measured) => row.with(measured, nginx.as_deref(), envoy.as_deref()),
                Err(reason) => HandshakeRow { note: Some(reason.clone()), ..row },
            }
        })
        .collect()
}

impl HandshakeRow {
    fn with(self, measured: &Measured, nginx: Option<&[Option<f64>]>, envoy: Option<&[Option<f64>]>) -> Self {
        let cpu = &measured.cpu_us_per_handshake;
        let seen = &measured.seen;
        let ratio_to = |other: Option<&[Option<f64>]>| Spread::of_ratios(cpu, other?);
        let percentile = |histogram: &Histogram<u64>, percentile| {
            (!histogram.is_empty()).then(|| histogram.value_at_percentile(percentile))
        };
        let cpu_spread = Spread::of(cpu.iter().copied().flatten());
        let (to_nginx, to_envoy) = (ratio_to(nginx), ratio_to(envoy));
        let median = |values: &[Option<f64>]| Some(Spread::of(values.iter().copied().flatten())?.median);
        Self {
            cpu_us_per_handshake: cpu_spread.map(|spread| spread.median),
            cpu_us_spread: cpu_spread,
            ratio_to_nginx: to_nginx.map(|spread| spread.median),
            ratio_to_nginx_spread: to_nginx,
            ratio_to_envoy: to_envoy.map(|spread| spread.median),
            ratio_to_envoy_spread: to_envoy,
            handshakes_per_second: median(&measured.handshakes_per_second),
            server_busy: median(&measured.server_busy),
            p50_us: percentile(&seen.handshake_us, 50.0),
            p99_us: percentile(&seen.handshake_us, 99.0),
            response_p50_us: percentile(&seen.exchange_us, 50.0),
            response_p99_us: percentile(&seen.exchange_us, 99.0),
            full: seen.ok - seen.resumed,
            failed: seen.failed(),
            tickets: seen.tickets,
            negotiated: seen.negotiated.keys().map(ToString::to_string).collect(),
            note: measured.gave_up.clone().or_else(|| seen.failure()),
            ..self
        }
    }
}

/// The table of one scenario.
pub fn handshake_table(scenario: &Scenario, rows: &[HandshakeRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!("{scenario}\n");
    table += &format!(
        "  {:<width$} {:>7}  {:<18} {:<18} {:>6} {:>5} {:>8} {:>8} {:>7}\n",
        "server", "CPU us", "/ nginx", "/ envoy", "per s", "core", "p50 us", "p99 us", "failed"
    );
    for (row, name) in rows.iter().zip(&names) {
        if let Some(cpu) = row.cpu_us_per_handshake {
            let _ = writeln!(
                table,
                "  {name:<width$} {cpu:>7.0}  {:<18} {:<18} {:>6.0} {:>4.0}% {:>8} {:>8} {:>7}",
                ratio(row.ratio_to_nginx_spread),
                ratio(row.ratio_to_envoy_spread),
                row.handshakes_per_second.unwrap_or_default(),
                row.server_busy.unwrap_or_default() * 100.0,
                row.p50_us.unwrap_or_default(),
                row.p99_us.unwrap_or_default(),
                row.failed
            );
        } else {
            let _ = writeln!(table, "  {name:<width$} not measured");
        }
    }
    table + &remarks(rows)
}

fn name(server: &str, version: Option<&str>) -> String {
    version.map_or_else(|| server.to_owned(), |version| format!("{server} {version}"))
}

fn width(names: &[String]) -> usize {
    names.iter().map(String::len).max().unwrap_or_default()
}

fn ratio(spread: Option<Spread>) -> String {
    match spread {
        None => "-".into(),
        Some(Spread { median, min, max }) if min == max => format!("{median:.2}"),
        Some(Spread { median, min, max }) => format!("{median:.2} ({min:.2}..{max:.2})"),
    }
}

/// What a reader must know to trust the table: whether all did the same work, and what went wrong.
fn remarks(rows: &[HandshakeRow]) -> String {
    let mut text = String::new();
    let mut measured = rows.iter().filter(|row| row.full > 0);
    if let Some(first) = measured.next() {
        if measured.all(|row| row.negotiated == first.negotiated) {
            let _ = writeln!(text, "  all: {}", first.negotiated.join(", "));
        } else {
            for row in rows.iter().filter(|row| row.full > 0) {
                let _ = writeln!(text, "  {}: {}", row.server, row.negotiated.join(", "));
            }
        }
    }
    for row in rows {
        if row.tickets > 0 {
            let each = row.tickets as f64 / row.full as f64;
            let _ = writeln!(text, "  {}: hands out {each:.1} tickets a handshake even so", row.server);
        }
        if let Some(note) = &row.note {
            let _ = writeln!(text, "  {}: {note}", row.server);
        }
    }
    text
}

/// One server's memory per idle connection.
#[derive(Clone, Debug, Serialize)]
pub struct IdleRow {
    /// What each connection did before it idled.
    pub scenario: String,
    /// Name of the server.
    pub server: String,
    /// Its version and that of its TLS library.
    pub version: Option<String>,
    /// Idle connections open while memory was read.
    pub connections: Option<usize>,
    /// Growth of the proportional set size per connection, KiB.
    pub pss_kib_per_connection: Option<f64>,
    /// Growth of the resident set size per connection, KiB.
    pub rss_kib_per_connection: Option<f64>,
    /// Why something is missing.
    pub note: Option<String>,
}

/// The row of `contestant`.
pub fn idle_row(before: Before, contestant: &Contestant, held: Result<Held, String>) -> IdleRow {
    let (held, note) = held.map_or_else(|reason| (None, Some(reason)), |held| (Some(held), None));
    IdleRow {
        scenario: before.to_string(),
        server: contestant.rival.to_string(),
        version: contestant.version.clone().ok(),
        connections: held.map(|held| held.open),
        pss_kib_per_connection: held.map(|held| held.pss_kib),
        rss_kib_per_connection: held.map(|held| held.rss_kib),
        note,
    }
}

/// The table of memory per idle connection.
pub fn idle_table(rows: &[IdleRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let mut table = format!(
        "  {:<width$} {:<20} {:>6} {:>13} {:>13}\n",
        "server", "idle", "open", "PSS KiB each", "RSS KiB each"
    );
    for (row, name) in rows.iter().zip(&names) {
        let _ = match (row.connections, row.pss_kib_per_connection, row.rss_kib_per_connection) {
            (Some(open), Some(pss), Some(rss)) => {
                writeln!(table, "  {name:<width$} {:<20} {open:>6} {pss:>13.1} {rss:>13.1}", row.scenario)
            }
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(table, "  {name:<width$} {:<20} {note}", row.scenario)
            }
        };
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::scenario::KeyKind;
    use quadrille_profile::load::{Outcome, TlsVersion};

    fn scenario() -> Scenario {
        Scenario {
            version: TlsVersion::V1_3,
            key: KeyKind::P256,
            groups: "X25519".into(),
            clients: 32,
            requests: 1,
        }
    }

    fn contestant(rival: Rival) -> Contestant {
        Contestant { rival, program: PathBuf::new(), version: Ok("1".into()) }
    }

    fn measured(cpu_us: [f64; 3]) -> Result<Measured, String> {
        let mut seen = Outcome { ok: 6, ..Outcome::default() };
        seen.handshake_us.record(900).unwrap();
        Ok(Measured {
            cpu_us_per_handshake: cpu_us.map(Some).into(),
            handshakes_per_second: vec![Some(1000.0)],
            server_busy: vec![Some(0.97)],
            seen,
            gave_up: None,
        })
    }

    #[test]
    fn rows_carry_ratios_of_the_same_rounds() {
        let contestants = [Rival::Nginx, Rival::Envoy, Rival::Quadrille].map(contestant);
        let results = [
            measured([400.0, 800.0, 400.0]),
            measured([300.0, 600.0, 300.0]),
            measured([200.0, 400.0, 240.0]),
        ];
        let rows = handshake_rows(&scenario(), &contestants, &results);
        assert_eq!(rows[0].ratio_to_nginx, Some(1.0));
        assert_eq!(rows[2].cpu_us_per_handshake, Some(240.0));
        assert_eq!(rows[2].ratio_to_nginx_spread, Some(Spread { median: 0.5, min: 0.5, max: 0.6 }));
        assert_eq!(rows[1].ratio_to_envoy, Some(1.0));
        assert_eq!((rows[2].p50_us, rows[2].full, rows[2].failed), (Some(900), 6, 0));
    }

    #[test]
    fn a_missing_server_has_a_row_that_says_so() {
        let contestants = [Rival::Quadrille, Rival::Nginx].map(contestant);
        let results = [Err("bin/quadrille is not there".into()), measured([1.0, 2.0, 3.0])];
        let rows = handshake_rows(&scenario(), &contestants, &results);
        assert_eq!((rows[0].cpu_us_per_handshake, rows[1].ratio_to_envoy), (None, None));
        let table = handshake_table(&scenario(), &rows);
        assert!(table.contains("not measured") && table.contains("bin/quadrille is not there"), "{table}");
        let json = serde_json::to_value(&rows).unwrap();
        assert_eq!(json[1]["scenario"], "tls1.3-p256-x25519-32clients");
        assert_eq!(json[0]["cpu_us_per_handshake"], serde_json::Value::Null);
    }

    #[test]
    fn unequal_work_is_pointed_out() {
        let row = |server: &str, cipher: &str, tickets| HandshakeRow {
            server: server.into(),
            full: 10,
            tickets,
            negotiated: vec![cipher.into()],
            ..HandshakeRow::default()
        };
        let same = remarks(&[row("a", "AES128", 0), row("b", "AES128", 0)]);
        assert_eq!(same, "  all: AES128\n");
        let different = remarks(&[row("a", "AES128", 0), row("b", "AES256", 20)]);
        assert_eq!(different, "  a: AES128\n  b: AES256\n  b: hands out 2.0 tickets a handshake even so\n");
    }
}
