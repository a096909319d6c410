//! The whole comparison as one page.

mod cell;
mod findings;
mod keys;
mod others;
mod post_quantum;
mod provider;
mod requests;

use std::fmt::Write as _;

pub use self::findings::Findings;
use self::{
    cell::in_cell,
    keys::key_section,
    others::{cross_section, idle_section},
    post_quantum::post_quantum_section,
    provider::provider_section,
    requests::request_section,
};
use super::{HandshakeRow, handshakes::remarks};
use crate::{
    contestants::Contestant,
    rival::Rival,
    rounds::Plan,
    scenario::{KeyKind, Resumption, Scenario},
};
use quadrille_profile::load::TlsVersion;

/// Formats the page; `picture` is the file name of [`bars`](super::picture::bars).
pub fn page(findings: &Findings, picture: &str) -> String {
    let mut page = String::from(
        "# Quadrille compared with nginx, HAProxy, Envoy and hitch\n\n\
         Written by `make compare`; method and interpretation are described in [README.md](README.md). Ratios are medians \
         over interleaved rounds, and on a busy machine they are more reliable than microseconds.\n\n",
    );
    page += &headline(findings);
    let _ = writeln!(page, "![CPU per handshake, as bars]({picture})\n");
    page += &setting(findings);
    for key in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::Rsa4096] {
        page += &key_section(findings, key);
    }
    page += &request_section(&findings.requests);
    page += &provider_section(&findings.provider);
    page += &post_quantum_section(&findings.post_quantum);
    page += &idle_section(&findings.idle);
    page += &cross_section(&findings.cross_check);
    page += &checks(&findings.handshakes);
    page
}

/// Returns the main figure in one sentence.
fn headline(findings: &Findings) -> String {
    let find = |key: KeyKind| {
        let full = |scenario: &Scenario| {
            scenario.key == key
                && scenario.version == TlsVersion::V1_3
                && scenario.resumption == Resumption::Off
                && scenario.clients > 1
                && !scenario.is_post_quantum()
        };
        let (_, rows) = findings.handshakes.iter().find(|(scenario, _)| full(scenario))?;
        let row = rows.iter().find(|row| row.server == Rival::Quadrille.to_string())?;
        let us = row.cpu_us_per_handshake?;
        let to =
            |name: &str| row.ratios.get(name).map(|spread| format!("{:.2} times {name}'s", spread.median));
        let ratios: Vec<String> = ["nginx", "envoy", "haproxy-awslc"].into_iter().filter_map(to).collect();
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
         interleaved rounds of {} s or {handshakes} handshakes (half of both for one client), each handshake with one request, X25519 unless another group is named.\n\n\
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

/// Returns the settings that differ from defaults; the linked files have all of them.
fn flags(rival: Rival) -> &'static str {
    match rival {
        Rival::Nginx => {
            "[nginx.conf](handshakes/rivals/nginx.conf): `worker_processes 1`, `reuseport`, no access log"
        }
        Rival::Haproxy => "[haproxy.cfg](handshakes/rivals/haproxy.cfg): `nbthread 1`, client's cipher order",
        Rival::HaproxyAwsLc => {
            "[haproxy.cfg](handshakes/rivals/haproxy.cfg), built by [haproxy-awslc.sh](haproxy-awslc.sh)"
        }
        Rival::Envoy => {
            "[envoy.yaml](handshakes/rivals/envoy.yaml): `--concurrency 1`, no access log, no request id, no admin"
        }
        Rival::Rustls => "[bench/rustls](rustls/src/server.rs): one thread with epoll, no resumption",
        Rival::Quadrille => "`--threads 1`, no admin",
        Rival::Keyless => {
            "like `quadrille`; the key is on a key server on the client's core, over mutual TLS, not counted"
        }
        Rival::Hitch => "[hitch.conf](handshakes/rivals/hitch.conf): `workers = 1`, no log",
        Rival::HaproxyTcp => "like `haproxy`, `mode tcp`",
        Rival::QuadrilleTcp => "like `quadrille`, `--mode tcp`",
    }
}

/// Lists the negotiated parameters, and checks that the handshakes were of the requested kind.
fn checks(tables: &[(Scenario, Vec<HandshakeRow>)]) -> String {
    let mut text = String::from(
        "## Checks\n\nThe client counts full and resumed handshakes, from the TLS state of each connection. A round with a \
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{machine::Machine, statistics::Spread};
    use std::{path::PathBuf, time::Duration};

    fn findings() -> Findings {
        let scenario = |resumption| Scenario {
            version: TlsVersion::V1_3,
            key: KeyKind::Rsa2048,
            resumption,
            groups: "X25519".into(),
            clients: 32,
            requests: 1,
            per_second: None,
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
                contestant(Rival::Envoy, Err("not | available")),
                contestant(Rival::Quadrille, Ok("0.1.0")),
            ],
            handshakes: vec![
                (
                    scenario(Resumption::Off),
                    vec![row("nginx", 1000.0, 50, 0), row("quadrille", 430.0, 60, 0)],
                ),
                (scenario(Resumption::On), vec![row("nginx", 200.0, 1, 50), row("quadrille", 150.0, 0, 60)]),
            ],
            requests: Err("nginx is not installed".into()),
            provider: Err("the module is missing".into()),
            post_quantum: Err("no server starts".into()),
            idle: Vec::new(),
            cross_check: Err("h2load is not installed".into()),
        }
    }

    #[test]
    fn the_page_has_a_table_for_each_key_and_says_what_is_missing() {
        let page = page(&findings(), "report.svg");
        assert!(page.contains("costs Quadrille 430 us of CPU: 0.43 times nginx's."), "{page}");
        assert!(page.contains("| server | TLS 1.3 full | TLS 1.3 resumed |"), "{page}");
        assert!(page.contains("| quadrille | 430 (0.43) | 150 (0.15) |"), "{page}");
        assert!(page.contains("| envoy | left out: not / available |"), "{page}");
        assert!(page.contains("Not measured: nginx is not installed."), "{page}");
        assert!(page.contains("Not measured: the module is missing."), "{page}");
        assert!(page.contains("Not measured: h2load is not installed."), "{page}");
        assert!(page.contains("Not measured: no server starts."), "{page}");
        assert!(page.contains("nginx: 1 of 51 were full"), "{page}");
        assert!(page.contains("![CPU per handshake, as bars](report.svg)"), "{page}");
        assert!(!page.contains("## P-256"), "a key that was not measured has no section");
    }
}
