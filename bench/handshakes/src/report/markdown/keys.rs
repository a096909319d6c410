//! The page's section on handshakes with one key type.

use std::fmt::Write as _;

use super::findings::Findings;
use crate::{
    report::HandshakeRow,
    rival::Job,
    scenario::{KeyKind, Resumption, Scenario},
};
use quadrille_profile::load::TlsVersion;

/// Version, whether the group is post-quantum, full or resumed.
type Kind = (TlsVersion, bool, Resumption);

const KINDS: [(Kind, &str); 6] = [
    ((TlsVersion::V1_3, false, Resumption::Off), "TLS 1.3 full"),
    ((TlsVersion::V1_3, true, Resumption::Off), "TLS 1.3 full, ML-KEM"),
    ((TlsVersion::V1_2, false, Resumption::Off), "TLS 1.2 full"),
    ((TlsVersion::V1_3, false, Resumption::On), "TLS 1.3 resumed"),
    ((TlsVersion::V1_3, true, Resumption::On), "TLS 1.3 resumed, ML-KEM"),
    ((TlsVersion::V1_2, false, Resumption::On), "TLS 1.2 resumed"),
];

pub(super) fn key_section(findings: &Findings, key: KeyKind) -> String {
    let of_key: Vec<_> = findings.handshakes.iter().filter(|(scenario, _)| scenario.key == key).collect();
    let Some(many) = of_key.iter().map(|(scenario, _)| scenario.clients).max() else { return String::new() };
    let mut text = format!("## {key}\n\n");
    for job in Job::ALL {
        let [baseline, others @ ..] = job.baselines() else { continue };
        let baseline = baseline.to_string();
        let table = |title: &str, clients: usize, cell: &dyn Fn(&HandshakeRow) -> Option<String>| {
            table(title, &of_key, findings, job, clients, cell)
        };
        text += &table(
            &format!("{job}; {many} clients: CPU us per handshake (relative to {baseline})"),
            many,
            &|row| {
                let us = row.cpu_us_per_handshake?;
                let against = row.ratios.get(&baseline).map(|spread| format!(" ({:.2})", spread.median));
                Some(format!("{us:.0}{}", against.unwrap_or_default()))
            },
        );
        for other in others {
            let other = other.to_string();
            let title = format!("{job}; {many} clients: CPU per handshake relative to {other}");
            text += &table(&title, many, &|row| Some(format!("{:.2}", row.ratios.get(&other)?.median)));
        }
        text += &table(
            &format!(
                "{job}; {many} clients: handshakes per second; p50, p99 in us, connect to end of handshake"
            ),
            many,
            &|row| Some(format!("{:.0}; {}, {}", row.handshakes_per_second?, row.p50_us?, row.p99_us?)),
        );
        if many > 1 {
            text += &table(&format!("{job}; one client: CPU us per handshake; p50, p99 in us"), 1, &|row| {
                Some(format!("{:.0}; {}, {}", row.cpu_us_per_handshake?, row.p50_us?, row.p99_us?))
            });
        }
    }
    text
}

/// Formats one row for each server with this job, one column for each kind of handshake that was measured.
fn table(
    title: &str,
    of_key: &[&(Scenario, Vec<HandshakeRow>)],
    findings: &Findings,
    job: Job,
    clients: usize,
    cell: &dyn Fn(&HandshakeRow) -> Option<String>,
) -> String {
    let rows_of = |kind: Kind| {
        let (_, rows) = of_key.iter().find(|(scenario, _)| {
            let of_scenario = (scenario.version, scenario.is_post_quantum(), scenario.resumption);
            (of_scenario, scenario.clients) == (kind, clients)
        })?;
        Some(rows)
    };
    let columns: Vec<_> = KINDS.into_iter().filter_map(|(kind, head)| Some((head, rows_of(kind)?))).collect();
    let servers: Vec<_> = findings.contestants.iter().filter(|one| one.rival.job() == job).collect();
    if columns.is_empty() || servers.is_empty() {
        return String::new();
    }
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut text =
        format!("{title}\n\n| server | {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len()));
    for contestant in servers {
        let name = contestant.rival.to_string();
        let value = |rows: &Vec<HandshakeRow>| {
            let row = rows.iter().find(|row| row.server == name)?;
            cell(row)
        };
        let cells: Vec<String> =
            columns.iter().map(|(_, rows)| value(rows).unwrap_or_else(|| "-".to_owned())).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text + "\n"
}
