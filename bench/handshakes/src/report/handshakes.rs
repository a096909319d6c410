//! CPU per handshake, as a table for the terminal and as JSON.

use std::{collections::BTreeMap, fmt::Write as _};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{name, ratio, width};
use crate::{
    contestants::Contestant,
    rival::{Job, Rival},
    rounds::Measured,
    scenario::Scenario,
    statistics::Spread,
};

/// One server in one scenario. Values that could not be measured are absent, and `note` gives the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HandshakeRow {
    /// [`Scenario::id`].
    pub scenario: String,
    /// Name of the server.
    pub server: String,
    /// Job of the server.
    #[serde(serialize_with = "as_text")]
    pub job: Option<Job>,
    /// Version of the server and of its TLS library.
    pub version: Option<String>,
    /// CPU time of the server's processes per handshake, microseconds; median of the rounds.
    pub cpu_us_per_handshake: Option<f64>,
    /// Median, least and greatest of that over the rounds.
    pub cpu_us_spread: Option<Spread>,
    /// CPU per handshake relative to nginx in the same round; median of the rounds. Only for servers with nginx's
    /// job.
    pub ratio_to_nginx: Option<f64>,
    /// CPU per handshake relative to Envoy.
    pub ratio_to_envoy: Option<f64>,
    /// CPU per handshake relative to each server in the same round: median, least and greatest over the rounds.
    pub ratios: BTreeMap<String, Spread>,
    /// Handshakes (each with its requests) per second; median of the rounds.
    pub handshakes_per_second: Option<f64>,
    /// Fraction of its core that the server used; median of the rounds. Well under 1 with many clients means that
    /// another resource was the limit.
    pub server_busy: Option<f64>,
    /// Median time from connect to the end of the handshake, microseconds.
    pub p50_us: Option<u64>,
    /// 99th percentile of that time.
    pub p99_us: Option<u64>,
    /// Median time from connect to the last byte of the last response, microseconds.
    pub response_p50_us: Option<u64>,
    /// 99th percentile of that time.
    pub response_p99_us: Option<u64>,
    /// Full handshakes that succeeded.
    pub full: u64,
    /// Successful handshakes that the server resumed.
    pub resumed: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Sessions or tickets issued.
    pub tickets: u64,
    /// Negotiated parameters: version, cipher suite, group, signature.
    pub negotiated: Vec<String>,
    /// Reason that a value is missing.
    pub note: Option<String>,
}

/// Builds the rows of one scenario. `measured` has a result, or the reason that it is missing, for each of
/// `contestants`.
pub fn handshake_rows(
    scenario: &Scenario,
    contestants: &[Contestant],
    measured: &[Result<Measured, String>],
) -> Vec<HandshakeRow> {
    let cpu_of = |rival: Rival| {
        let index = contestants.iter().position(|contestant| contestant.rival == rival)?;
        Some((rival.to_string(), measured[index].as_ref().ok()?.cpu_us_per_handshake.clone()))
    };
    contestants
        .iter()
        .zip(measured)
        .map(|(contestant, measured)| {
            let job = contestant.rival.job();
            let row = HandshakeRow {
                scenario: scenario.id(),
                server: contestant.rival.to_string(),
                job: Some(job),
                version: contestant.version.clone().ok(),
                ..HandshakeRow::default()
            };
            let baselines: Vec<_> = job.baselines().iter().copied().filter_map(cpu_of).collect();
            match measured {
                Ok(measured) => row.with(measured, &baselines),
                Err(reason) => HandshakeRow { note: Some(reason.clone()), ..row },
            }
        })
        .collect()
}

impl HandshakeRow {
    fn with(self, measured: &Measured, baselines: &[(String, Vec<Option<f64>>)]) -> Self {
        let cpu = &measured.cpu_us_per_handshake;
        let seen = &measured.seen;
        let percentile = |histogram: &Histogram<u64>, percentile| {
            (!histogram.is_empty()).then(|| histogram.value_at_percentile(percentile))
        };
        let cpu_spread = Spread::of_values(cpu.iter().copied().flatten());
        let ratios: BTreeMap<String, Spread> = baselines
            .iter()
            .filter_map(|(name, theirs)| Some((name.clone(), Spread::of_ratios(cpu, theirs)?)))
            .collect();
        let median =
            |values: &[Option<f64>]| Some(Spread::of_values(values.iter().copied().flatten())?.median);
        Self {
            cpu_us_per_handshake: cpu_spread.map(|spread| spread.median),
            cpu_us_spread: cpu_spread,
            ratio_to_nginx: ratios.get("nginx").map(|spread| spread.median),
            ratio_to_envoy: ratios.get("envoy").map(|spread| spread.median),
            ratios,
            handshakes_per_second: median(&measured.handshakes_per_second),
            server_busy: median(&measured.server_busy),
            p50_us: percentile(&seen.handshake_us, 50.0),
            p99_us: percentile(&seen.handshake_us, 99.0),
            response_p50_us: percentile(&seen.exchange_us, 50.0),
            response_p99_us: percentile(&seen.exchange_us, 99.0),
            full: seen.full(),
            resumed: seen.resumed,
            failed: seen.failed(),
            tickets: seen.tickets,
            negotiated: seen.negotiated.keys().map(ToString::to_string).collect(),
            note: measured.gave_up.clone().or_else(|| seen.failure()),
            ..self
        }
    }

    /// Returns whether any value was measured.
    pub fn measured(&self) -> bool {
        self.full + self.resumed > 0
    }
}

fn as_text<S: serde::Serializer>(job: &Option<Job>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&job.map(|job| job.to_string()).unwrap_or_default())
}

/// Formats the tables of one scenario: one for each job.
pub fn handshake_table(scenario: &Scenario, rows: &[HandshakeRow]) -> String {
    let tables = Job::ALL.map(|job| {
        let rows: Vec<&HandshakeRow> = rows.iter().filter(|row| row.job == Some(job)).collect();
        if rows.is_empty() { String::new() } else { table(&format!("{scenario}: {job}"), job, &rows) }
    });
    tables.concat()
}

fn table(title: &str, job: Job, rows: &[&HandshakeRow]) -> String {
    let names: Vec<String> = rows.iter().map(|row| name(&row.server, row.version.as_deref())).collect();
    let width = width(&names);
    let baselines: Vec<String> = job.baselines().iter().map(Rival::to_string).collect();
    let columns = |cell: &dyn Fn(&str) -> String| -> String {
        baselines.iter().map(|baseline| format!(" {:<18}", cell(baseline))).collect()
    };
    let mut table = format!("{title}\n");
    table += &format!(
        "  {:<width$} {:>7} {} {:>6} {:>5} {:>8} {:>8} {:>7}\n",
        "server",
        "CPU us",
        columns(&|baseline| format!("/ {baseline}")),
        "per s",
        "core",
        "p50 us",
        "p99 us",
        "failed"
    );
    for (row, name) in rows.iter().zip(&names) {
        if let Some(cpu) = row.cpu_us_per_handshake {
            let _ = writeln!(
                table,
                "  {name:<width$} {cpu:>7.0} {} {:>6.0} {:>4.0}% {:>8} {:>8} {:>7}",
                columns(&|baseline| ratio(row.ratios.get(baseline))),
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
    remarks(rows).into_iter().fold(table, |table, remark| table + "  " + &remark + "\n")
}

/// Returns remarks about the validity of the table: whether all servers did the same work, and what failed.
pub(super) fn remarks(rows: &[&HandshakeRow]) -> Vec<String> {
    let mut remarks = Vec::new();
    let measured: Vec<&&HandshakeRow> = rows.iter().filter(|row| row.measured()).collect();
    if let Some(first) = measured.first() {
        if measured.iter().all(|row| row.negotiated == first.negotiated) {
            remarks.push(format!("all: {}", first.negotiated.join(", ")));
        } else {
            remarks
                .extend(measured.iter().map(|row| format!("{}: {}", row.server, row.negotiated.join(", "))));
        }
    }
    for row in rows {
        let each = row.tickets as f64 / (row.full + row.resumed).max(1) as f64;
        if row.resumed > 0 && row.full > 0 {
            remarks.push(format!("{}: {} of {} were full", row.server, row.full, row.full + row.resumed));
        }
        if row.tickets > 0 && row.resumed == 0 {
            remarks
                .push(format!("{}: issues {each:.1} sessions or tickets per handshake anyway", row.server));
        }
        if let Some(note) = &row.note {
            remarks.push(format!("{}: {note}", row.server));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::scenario::{KeyKind, Resumption};
    use quadrille_profile::load::{Outcome, TlsVersion};

    fn scenario() -> Scenario {
        Scenario {
            version: TlsVersion::V1_3,
            key: KeyKind::P256,
            resumption: Resumption::Off,
            groups: "X25519".into(),
            clients: 32,
            requests: 1,
            per_second: None,
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
            ..Measured::default()
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
        assert_eq!(rows[2].ratios["nginx"], Spread { median: 0.5, min: 0.5, max: 0.6 });
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
    fn servers_with_another_job_are_in_a_table_of_their_own() {
        let contestants = [Rival::Nginx, Rival::Hitch, Rival::QuadrilleTcp].map(contestant);
        let results = [measured([1.0; 3]), measured([4.0; 3]), measured([2.0; 3])];
        let rows = handshake_rows(&scenario(), &contestants, &results);
        assert_eq!(rows[2].ratio_to_nginx, None);
        assert_eq!(rows[2].ratios["hitch"].median, 0.5);
        let table = handshake_table(&scenario(), &rows);
        assert!(table.contains("/ nginx") && table.contains("/ hitch"), "{table}");
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
        let same = remarks(&[&row("a", "AES128", 0), &row("b", "AES128", 0)]);
        assert_eq!(same, ["all: AES128"]);
        let different = remarks(&[&row("a", "AES128", 0), &row("b", "AES256", 20)]);
        assert_eq!(
            different,
            ["a: AES128", "b: AES256", "b: issues 2.0 sessions or tickets per handshake anyway"]
        );
    }
}
