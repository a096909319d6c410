//! The whole comparison as one page.

use std::fmt::Write as _;

use super::{BulkRow, CrossRow, HandshakeRow, IdleRow, cross_check::TOLERANCE, handshakes::remarks, ratio};
use crate::{
    contestants::Contestant,
    machine::Machine,
    rival::{Job, Rival},
    rounds::Plan,
    scenario::{KeyKind, Resumption, Scenario},
    upstream::BULK_BYTES,
};
use quadrille_profile::load::TlsVersion;

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Where.
    pub machine: Machine,
    /// When, as a date.
    pub date: String,
    /// How much.
    pub plan: Plan,
    /// Who.
    pub contestants: Vec<Contestant>,
    /// CPU per handshake, scenario by scenario.
    pub handshakes: Vec<(Scenario, Vec<HandshakeRow>)>,
    /// One large body.
    pub bulk: Vec<BulkRow>,
    /// Memory per idle connection.
    pub idle: Vec<IdleRow>,
    /// Version of the generator that is not ours, and what it saw.
    pub cross_check: Result<(String, Vec<(Scenario, Vec<CrossRow>)>), String>,
}

/// The page; `picture` is the file name of [`bars`](super::picture::bars).
pub fn page(findings: &Findings, picture: &str) -> String {
    let mut page = String::from(
        "# Quadrille beside nginx, HAProxy, Envoy and hitch\n\n\
         Written by `make compare`; what is measured and how to read it is in [README.md](README.md). Ratios are medians over \
         interleaved rounds, and on a busy machine they are worth more than microseconds.\n\n",
    );
    page += &headline(findings);
    let _ = writeln!(page, "![CPU per handshake, as bars]({picture})\n");
    page += &setting(findings);
    for key in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::Rsa4096] {
        page += &key_section(findings, key);
    }
    page += &bulk_section(&findings.bulk);
    page += &idle_section(&findings.idle);
    page += &cross_section(&findings.cross_check);
    page += &checks(&findings.handshakes);
    page
}

/// The main figure in one sentence.
fn headline(findings: &Findings) -> String {
    let find = |key: KeyKind| {
        let full = |scenario: &Scenario| {
            scenario.key == key
                && scenario.version == TlsVersion::V1_3
                && scenario.resumption == Resumption::Off
                && scenario.clients > 1
        };
        let (_, rows) = findings.handshakes.iter().find(|(scenario, _)| full(scenario))?;
        let row = rows.iter().find(|row| row.server == Rival::Quadrille.to_string())?;
        let us = row.cpu_us_per_handshake?;
        let to =
            |name: &str| row.ratios.get(name).map(|spread| format!("{:.2} times {name}'s", spread.median));
        let ratios: Vec<String> = ["nginx", "envoy"].into_iter().filter_map(to).collect();
        Some(format!(
            "A full TLS 1.3 handshake with a certificate of {key} costs Quadrille {us:.0} us of CPU: {}.",
            ratios.join(", ")
        ))
    };
    let sentences: Vec<String> =
        [KeyKind::Rsa2048, KeyKind::P256, KeyKind::Rsa4096].into_iter().filter_map(find).collect();
    if sentences.is_empty() { String::new() } else { format!("**{}**\n\n", sentences.join("\n")) }
}

fn setting(findings: &Findings) -> String {
    let Plan { rounds, handshakes, round_time } = findings.plan;
    let mut text = format!(
        "## Machine, versions, flags\n\n{}. {}.\n\nEvery server has one core and one worker, the client the other core. {rounds} \
         interleaved rounds of {} s or {handshakes} handshakes (half of both for one client), each handshake with one request, X25519.\n\n\
         | server | version | worker and flags |\n|---|---|---|\n",
        findings.machine,
        if findings.date.is_empty() {
            "No date given".to_owned()
        } else {
            format!("Measured on {}", findings.date)
        },
        round_time.as_secs_f64()
    );
    for Contestant { rival, version, .. } in &findings.contestants {
        let version = match version {
            Ok(version) => version.clone(),
            Err(reason) => format!("left out: {}", in_cell(reason)),
        };
        let _ = writeln!(text, "| {rival} | {version} | {} |", flags(*rival));
    }
    text.push('\n');
    text
}

/// What is set beyond defaults; the whole is in the files linked.
fn flags(rival: Rival) -> &'static str {
    match rival {
        Rival::Nginx => {
            "[nginx.conf](handshakes/rivals/nginx.conf): `worker_processes 1`, `reuseport`, no access log"
        }
        Rival::Haproxy => {
            "[haproxy.cfg](handshakes/rivals/haproxy.cfg): `nbthread 1`, client's order of ciphers"
        }
        Rival::Envoy => {
            "[envoy.yaml](handshakes/rivals/envoy.yaml): `--concurrency 1`, no access log, no request id, no admin"
        }
        Rival::Quadrille => "`--threads 1`, no admin",
        Rival::Keyless => {
            "as `quadrille`; the key is on a key server on the client's core, over mutual TLS, not counted"
        }
        Rival::Hitch => "[hitch.conf](handshakes/rivals/hitch.conf): `workers = 1`, no log",
        Rival::HaproxyTcp => "as `haproxy`, `mode tcp`",
        Rival::QuadrilleTcp => "as `quadrille`, `--mode tcp`",
    }
}

const KINDS: [(TlsVersion, Resumption, &str); 4] = [
    (TlsVersion::V1_3, Resumption::Off, "TLS 1.3 full"),
    (TlsVersion::V1_2, Resumption::Off, "TLS 1.2 full"),
    (TlsVersion::V1_3, Resumption::On, "TLS 1.3 resumed"),
    (TlsVersion::V1_2, Resumption::On, "TLS 1.2 resumed"),
];

fn key_section(findings: &Findings, key: KeyKind) -> String {
    let of_key: Vec<_> = findings.handshakes.iter().filter(|(scenario, _)| scenario.key == key).collect();
    let Some(many) = of_key.iter().map(|(scenario, _)| scenario.clients).max() else { return String::new() };
    let mut text = format!("## {key}\n\n");
    for job in Job::ALL {
        let baseline = job.baselines()[0].to_string();
        let table = |title: &str, clients: usize, cell: &dyn Fn(&HandshakeRow) -> Option<String>| {
            table(title, &of_key, findings, job, clients, cell)
        };
        text += &table(
            &format!("{job}; {many} clients: CPU us per handshake (against {baseline})"),
            many,
            &|row| {
                let us = row.cpu_us_per_handshake?;
                let against = row.ratios.get(&baseline).map(|spread| format!(" ({:.2})", spread.median));
                Some(format!("{us:.0}{}", against.unwrap_or_default()))
            },
        );
        text += &table(
            &format!(
                "{job}; {many} clients: handshakes a second; p50, p99 in us from connect to end of handshake"
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

/// One row for each server with this job, one column for each kind of handshake that was measured.
fn table(
    title: &str,
    of_key: &[&(Scenario, Vec<HandshakeRow>)],
    findings: &Findings,
    job: Job,
    clients: usize,
    cell: &dyn Fn(&HandshakeRow) -> Option<String>,
) -> String {
    let rows_of = |version, resumption| {
        let (_, rows) = of_key.iter().find(|(scenario, _)| {
            (scenario.version, scenario.resumption, scenario.clients) == (version, resumption, clients)
        })?;
        Some(rows)
    };
    let columns: Vec<_> = KINDS
        .into_iter()
        .filter_map(|(version, resumption, head)| Some((head, rows_of(version, resumption)?)))
        .collect();
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

fn bulk_section(rows: &[BulkRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Bulk\n\nA body of {} MiB, four downloads at once, through each server from one plain nginx on the client's core. Where a server \
         does not use its core whole, the client's core, with decryption and the upstream, was the limit: then CPU per gigabyte is what \
         compares.\n\n| server | GB/s | CPU s per GB | core | agreed on |\n|---|---:|---:|---:|---|\n",
        BULK_BYTES >> 20
    );
    for row in rows {
        let _ = match (row.gb_per_second, row.cpu_seconds_per_gb, row.server_busy) {
            (Some(speed), Some(price), Some(busy)) => writeln!(
                text,
                "| {} | {speed:.2} | {price:.2} | {:.0} % | {} |",
                row.server,
                busy * 100.0,
                row.negotiated.join(", ")
            ),
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(text, "| {} | - | - | - | {} |", row.server, in_cell(note))
            }
        };
    }
    text + "\n"
}

fn idle_section(rows: &[IdleRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Memory per idle connection\n\nGrowth of the server's processes; the kernel's socket buffers are not in it.\n\n\
         | server | idle | open | PSS KiB each | RSS KiB each |\n|---|---|---:|---:|---:|\n",
    );
    for row in rows {
        let _ = match (row.connections, row.pss_kib_per_connection, row.rss_kib_per_connection) {
            (Some(open), Some(pss), Some(rss)) => {
                writeln!(text, "| {} | {} | {open} | {pss:.1} | {rss:.1} |", row.server, row.scenario)
            }
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(text, "| {} | {} | {} | - | - |", row.server, row.scenario, in_cell(note))
            }
        };
    }
    text + "\n"
}

fn cross_section(checked: &Result<(String, Vec<(Scenario, Vec<CrossRow>)>), String>) -> String {
    let mut text = String::from("## The same with another generator\n\n");
    let (version, tables) = match checked {
        Ok(checked) => checked,
        Err(reason) => return text + &format!("Not done: {reason}.\n\n"),
    };
    let _ = writeln!(
        text,
        "{version} makes the same handshakes: same version, X25519, AES-128-GCM, a new connection for each request, closed after it, as many \
         in flight. What must agree, within {:.0} %, is the server's CPU per handshake. Handshakes a second compare only where both use the \
         server's core whole: h2load's OpenSSL spends more on a handshake than ours, and then the client is the limit.\n",
        TOLERANCE * 100.0
    );
    let all = || tables.iter().flat_map(|(_, rows)| rows).filter_map(|row| row.agrees);
    let _ = writeln!(text, "{} of {} agree.\n", all().filter(|agrees| *agrees).count(), all().count());
    text += "| handshake | server | CPU us, ours | CPU us, h2load | ratio | a second, ours | h2load | core, ours | h2load |\n\
             |---|---|---:|---:|---|---:|---:|---:|---:|\n";
    for (scenario, rows) in tables {
        let what = format!("TLS {} {}", scenario.version.number(), scenario.key);
        for row in rows {
            let _ = match (&row.ours, &row.h2load) {
                (Some(ours), Some(theirs)) => writeln!(
                    text,
                    "| {what} | {} | {:.0} | {:.0} | {}{} | {:.0} | {:.0} | {:.0} % | {:.0} % |",
                    row.server,
                    ours.cpu_us_per_handshake,
                    theirs.cpu_us_per_handshake,
                    ratio(row.cpu_ratio.as_ref()),
                    if row.agrees == Some(false) { " **apart**" } else { "" },
                    ours.handshakes_per_second,
                    theirs.handshakes_per_second,
                    ours.server_busy * 100.0,
                    theirs.server_busy * 100.0
                ),
                _ => {
                    let note = row.note.as_deref().unwrap_or("not measured");
                    writeln!(text, "| {what} | {} | {} |", row.server, in_cell(note))
                }
            };
        }
    }
    text + "\n"
}

/// What was agreed on, and whether the handshakes were those asked for.
fn checks(tables: &[(Scenario, Vec<HandshakeRow>)]) -> String {
    let mut text = String::from(
        "## Checks\n\nThe client counts, from what TLS says of each connection, which handshakes were full and which resumed. A round with a \
         resumed handshake among full ones, or with fewer than 99 % resumed ones, does not count.\n\n",
    );
    for (scenario, rows) in tables {
        let sum = |count: fn(&HandshakeRow) -> u64| rows.iter().map(count).sum::<u64>();
        let _ = writeln!(
            text,
            "- {scenario}: {} full, {} resumed, {} failed",
            sum(|row| row.full),
            sum(|row| row.resumed),
            sum(|row| row.failed)
        );
        let rows: Vec<&HandshakeRow> = rows.iter().collect();
        for remark in remarks(&rows) {
            let _ = writeln!(text, "  - {}", remark.replace('\n', " "));
        }
    }
    text
}

fn in_cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;
    use std::{path::PathBuf, time::Duration};

    fn findings() -> Findings {
        let scenario = |resumption| Scenario {
            version: TlsVersion::V1_3,
            key: KeyKind::Rsa2048,
            resumption,
            groups: "X25519".into(),
            clients: 32,
            requests: 1,
        };
        let row = |server: &str, us: f64, full, resumed| HandshakeRow {
            server: server.into(),
            cpu_us_per_handshake: Some(us),
            ratios: [("nginx".to_owned(), Spread { median: us / 1000.0, min: 0.1, max: 2.0 })].into(),
            full,
            resumed,
            negotiated: vec!["TLSv1.3".into()],
            ..HandshakeRow::default()
        };
        let contestant = |rival, version: Result<&str, &str>| Contestant {
            rival,
            program: PathBuf::new(),
            version: version.map(str::to_owned).map_err(str::to_owned),
        };
        Findings {
            machine: Machine::this(),
            date: "2026-01-01".into(),
            plan: Plan { rounds: 5, handshakes: 1000, round_time: Duration::from_millis(700) },
            contestants: vec![
                contestant(Rival::Nginx, Ok("1.22.1")),
                contestant(Rival::Envoy, Err("cannot | be had")),
                contestant(Rival::Quadrille, Ok("0.1.0")),
            ],
            handshakes: vec![
                (
                    scenario(Resumption::Off),
                    vec![row("nginx", 1000.0, 50, 0), row("quadrille", 430.0, 60, 0)],
                ),
                (scenario(Resumption::On), vec![row("nginx", 200.0, 1, 50), row("quadrille", 150.0, 0, 60)]),
            ],
            bulk: Vec::new(),
            idle: Vec::new(),
            cross_check: Err("h2load is not there".into()),
        }
    }

    #[test]
    fn the_page_has_a_table_for_each_key_and_says_what_is_missing() {
        let page = page(&findings(), "report.svg");
        assert!(page.contains("costs Quadrille 430 us of CPU: 0.43 times nginx's."), "{page}");
        assert!(page.contains("| server | TLS 1.3 full | TLS 1.3 resumed |"), "{page}");
        assert!(page.contains("| quadrille | 430 (0.43) | 150 (0.15) |"), "{page}");
        assert!(page.contains("| envoy | left out: cannot / be had |"), "{page}");
        assert!(page.contains("Not done: h2load is not there."), "{page}");
        assert!(page.contains("nginx: 1 of 51 were full"), "{page}");
        assert!(page.contains("![CPU per handshake, as bars](report.svg)"), "{page}");
        assert!(!page.contains("## P-256"), "a key that was not measured has no section");
    }
}
