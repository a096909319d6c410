//! The experiments in sequence: their terminal output, and their results for the page and as JSON.

mod curve;
mod fair;
mod http3;
mod post_quantum;
mod requests;

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::{Contestant, Stage},
    h2load::H2load,
    idle::{self, Before},
    overload::{self, Overloaded},
    provider::{Pairs, contenders},
    report::{
        self, CrossCheck, HandshakeRow, IdleRow, ProviderRows, latency_table, provider_rows, provider_table,
    },
    rival::{Behind, Job, Provider, Rival},
    scenario::{KeyKind, Resumption, Scenario},
    upstream::Upstream,
};
use quadrille_profile::load::TlsVersion;
use serde::Serialize;

use crate::args::Args;

/// Handshakes per second at which each client finds the server idle.
const QUIET: f64 = 60.0;
/// Scenarios repeated with h2load: RSA-4096, where every server is slower than h2load, and others, where h2load is
/// slower.
const CROSS_CHECKED: [(TlsVersion, KeyKind); 4] = [
    (TlsVersion::V1_3, KeyKind::Rsa4096),
    (TlsVersion::V1_3, KeyKind::Rsa2048),
    (TlsVersion::V1_2, KeyKind::Rsa2048),
    (TlsVersion::V1_3, KeyKind::P256),
];
/// Servers of the cross-check: of servers present in several variants, the first.
const VISITED: [Rival; 6] =
    [Rival::Nginx, Rival::Haproxy, Rival::HaproxyAwsLc, Rival::Envoy, Rival::Quadrille, Rival::Hitch];

/// The contestants, their upstream, and a directory for files.
pub(crate) struct Laboratory<'a> {
    args: &'a Args,
    contestants: Vec<Contestant>,
    directory: tempfile::TempDir,
    /// Maximum number of idle connections for a server that holds a second connection behind each.
    most_both_sides: usize,
    /// `None` if it cannot run: servers that need it are then left out.
    upstream: Option<Upstream>,
}

impl<'a> Laboratory<'a> {
    pub(crate) fn new(args: &'a Args) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let connections = args.idle_connections();
        let most_both_sides = idle::allow_files(connections as u64)?;
        let nginx = args.program(Rival::Nginx);
        let upstream = Upstream::start(&nginx, args.client_core, connections, directory.path())
            .map_err(|error| eprintln!("no upstream; servers that need it are left out: {error:#}"))
            .ok();
        Ok(Self { args, contestants: args.contestants(), directory, most_both_sides, upstream })
    }

    pub(crate) fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    /// Measures CPU per handshake.
    pub(crate) fn handshakes(&mut self) -> Result<Vec<(Scenario, Vec<HandshakeRow>)>> {
        let args = self.args;
        let plan = args.plan();
        println!(
            "{} rounds of {} s or {} handshakes (one client: half), {} request each. CPU us: the server's processes, per handshake; \
             / nginx and so on: against theirs in the same round, median (least..greatest); core: how much of its core the server used; \
             p50, p99: connect to end of handshake.\n",
            plan.rounds,
            plan.round_time.as_secs_f64(),
            plan.handshakes,
            args.requests_per_connection
        );
        let mut tables: Vec<(Scenario, Vec<HandshakeRow>)> = Vec::new();
        for key in args.keys() {
            let certificate = CertificateFiles::make(key, self.directory.path())?;
            for one in self.kinds_of_handshake(key) {
                let stage = self.stage(&certificate, self.most_clients(), false);
                let started = stage.start_all(&self.contestants, &Scenario { clients: 1, ..one.clone() });
                for clients in self.clients(&one) {
                    let scenario = Scenario { clients, ..one.clone() };
                    eprintln!("{scenario}");
                    let plan = if clients == 1 { plan.shortened() } else { plan };
                    let results = plan.measure(&scenario, &started.servers, |line| eprintln!("{line}"))?;
                    let measured = started.with_the_missing(results);
                    let rows = report::handshake_rows(&scenario, &self.contestants, &measured);
                    println!("{}", report::handshake_table(&scenario, &rows));
                    tables.push((scenario, rows));
                    let all: Vec<&HandshakeRow> = tables.iter().flat_map(|(_, rows)| rows).collect();
                    self.write_json("handshakes.json", &all)?;
                }
            }
        }
        ensure!(
            tables.iter().any(|(_, rows)| rows.iter().any(HandshakeRow::measured)),
            "no server could be measured"
        );
        Ok(tables)
    }

    /// Measures memory per idle connection.
    pub(crate) fn idle(&mut self) -> Result<Vec<IdleRow>> {
        let connections = self.args.idle_connections();
        let key = self.args.keys()[0];
        let certificate = CertificateFiles::make(key, self.directory.path())?;
        println!(
            "Memory of the server's processes for {connections} idle connections, kernel's socket buffers not counted\n"
        );
        let mut rows = Vec::new();
        for (before, requests) in [(Before::Handshake, 0), (Before::Request, 1)] {
            let version = self.args.versions[0];
            let scenario = Scenario { clients: 1, requests, ..self.scenario(key, version, Resumption::Off) };
            for contestant in &self.contestants {
                let connections = match contestant.rival.job() {
                    Job::Answer => connections,
                    Job::PassOn => connections.min(self.most_both_sides),
                };
                eprintln!("{connections} idle connections {before}: {}", contestant.rival);
                let stage = self.stage(&certificate, connections, false);
                let measure =
                    || idle::measure(contestant, &stage, &scenario).map_err(|error| format!("{error:#}"));
                let held = contestant.version.clone().and_then(|_| measure());
                rows.push(report::idle_row(before, contestant, held));
                self.write_json("idle-connections.json", &rows)?;
            }
        }
        println!("{}", report::idle_table(&rows));
        ensure!(rows.iter().any(|row| row.connections.is_some()), "no server could be measured");
        Ok(rows)
    }

    /// Measures the CPU that the provider saves in other servers.
    pub(crate) fn provider(&mut self) -> Result<ProviderRows> {
        let (args, plan) = (self.args, self.args.plan());
        let quadrille = args.program(Rival::Quadrille);
        let module = args.module.canonicalize().with_context(|| {
            format!("the provider's module {} is missing; `make build` creates it", args.module.display())
        })?;
        let nginx_module = args.nginx_module.canonicalize();
        let nginx_module = nginx_module
            .map_err(|error| eprintln!("no nginx with {}: {error}", args.nginx_module.display()))
            .ok();
        let contenders = contenders(nginx_module.is_some(), &args.workers);
        let provider = Provider { module, nginx_module, quadrille: quadrille.clone() };
        let h2load = H2load::find(&args.h2load).map_err(|error| eprintln!("no DHE_RSA: {error:#}")).ok();
        let certificate = CertificateFiles::make(KeyKind::Rsa2048, self.directory.path())?;
        let stage = self.stage(&certificate, self.most_clients(), false);
        let stage = Stage { provider: Some(&provider), ..stage };
        let mut found = ProviderRows::default();
        for version in &args.versions {
            let scenario = self.scenario(KeyKind::Rsa2048, *version, Resumption::Off);
            let pairs = Pairs::start(&contenders, &self.contestants, &stage, &scenario);
            eprintln!("{scenario}, with the provider and without");
            let name = format!("TLS {}, ECDHE_RSA", version.number());
            found.busy.extend(provider_rows(&name, &pairs.measure(plan, &scenario)?, &pairs.missing));
            if let Some(h2load) = h2load.as_ref().filter(|_| *version == TlsVersion::V1_2) {
                eprintln!("the same, DHE_RSA, by h2load");
                let dhe = pairs.measure_dhe(plan, &scenario, h2load);
                found.busy.extend(provider_rows("TLS 1.2, DHE_RSA", &dhe, &pairs.missing));
            }
            eprintln!("the same, {QUIET} connections a second");
            let quiet = Scenario { per_second: Some(QUIET), ..scenario };
            found.quiet.extend(provider_rows(&name, &pairs.measure(plan, &quiet)?, &pairs.missing));
            self.write_json("provider.json", &found)?;
        }
        println!(
            "With the provider, RSA-2048, {} clients\n{}",
            self.most_clients(),
            provider_table(&found.busy)
        );
        println!("Latency at {QUIET} handshakes a second\n{}", latency_table(&found.quiet));
        ensure!(found.busy.iter().any(|row| row.cpu_ratio.is_some()), "no server could be measured");
        Ok(found)
    }

    /// Measures each server at four times its capacity.
    pub(crate) fn overload(&mut self) -> Result<Vec<Overloaded>> {
        let time = Duration::from_secs(self.args.overload.unwrap_or(60));
        let mut rows = Vec::new();
        for key in self.args.keys() {
            let certificate = CertificateFiles::make(key, self.directory.path())?;
            let scenario =
                Scenario { requests: 0, ..self.scenario(key, self.args.versions[0], Resumption::Off) };
            println!("{scenario}: four times what the server can do, for {} s", time.as_secs());
            for contestant in self.contestants.iter().filter(|one| one.rival.job() == Job::Answer) {
                eprintln!("{scenario}, overload: {}", contestant.rival);
                let stage = self.stage(&certificate, overload::MOST_CONNECTIONS, false);
                match overload::measure(contestant, &stage, &scenario, time) {
                    Ok(row) => {
                        println!("{row}");
                        rows.push(row);
                    }
                    Err(error) => println!("{}: {error:#}", contestant.rival),
                }
                self.write_json("overload.json", &rows)?;
            }
        }
        ensure!(!rows.is_empty(), "no server could be measured");
        Ok(rows)
    }

    /// Measures with the other generator.
    pub(crate) fn cross_check(&mut self) -> Result<CrossCheck> {
        let h2load = H2load::find(&self.args.h2load)?;
        let plan = self.args.plan().finer();
        let plain_http = self.plain_http(&h2load);
        let mut seen = CrossCheck { generator: h2load.version.clone(), plain_http, rows: Vec::new() };
        let keys = self.args.keys();
        let visited = |one: &&Contestant| VISITED.contains(&one.rival);
        let contestants: Vec<Contestant> = self.contestants.iter().filter(visited).cloned().collect();
        for (version, key) in CROSS_CHECKED.into_iter().filter(|(_, key)| keys.contains(key)) {
            let certificate = CertificateFiles::make(key, self.directory.path())?;
            let scenario = self.scenario(key, version, Resumption::Off);
            let stage = self.stage(&certificate, self.most_clients(), false);
            let started = stage.start_all(&contestants, &scenario);
            eprintln!("{scenario}, beside h2load");
            let core = self.args.server_core;
            let checked = h2load.check(&scenario, &started.servers, core, plan, |line| eprintln!("{line}"));
            let rows = report::cross_rows(&scenario, &contestants, &started.with_the_missing(checked));
            println!("{}", report::cross_table(&scenario, &rows));
            seen.rows.extend(rows);
            self.write_json("cross-check.json", &seen)?;
        }
        Ok(seen)
    }

    /// Measures the cost of the same request in nginx without TLS; prints a message and returns `None` if that fails.
    fn plain_http(&self, h2load: &H2load) -> Option<report::Seen> {
        let plan = self.args.plan();
        let directory = self.directory.path().join("plain");
        let measure = || {
            fs::create_dir_all(&directory)?;
            let nginx = self.args.program(Rival::Nginx);
            let server = Upstream::start(&nginx, self.args.server_core, self.most_clients(), &directory)?;
            h2load.plain_http(&server, self.most_clients(), plan)
        };
        let seen = measure().map_err(|error| eprintln!("plain HTTP was not measured: {error:#}")).ok()?;
        let seen = report::Seen::of_side(&seen)?;
        println!(
            "Plain HTTP, nginx, a new connection for each request: {:.0} us of CPU, {:.0} a second\n",
            seen.cpu_us_per_handshake, seen.handshakes_per_second
        );
        Some(seen)
    }

    fn scenario(&self, key: KeyKind, version: TlsVersion, resumption: Resumption) -> Scenario {
        Scenario {
            version,
            key,
            resumption,
            groups: self.args.groups[0].clone(),
            clients: self.most_clients(),
            requests: self.args.requests_per_connection,
            per_second: None,
        }
    }

    fn stage<'b>(
        &'b self,
        certificate: &'b CertificateFiles,
        connections: usize,
        all_pass_on: bool,
    ) -> Stage<'b> {
        Stage {
            cores: [self.args.server_core, self.args.client_core],
            certificate,
            connections,
            directory: self.directory.path(),
            upstream: self.upstream.as_ref(),
            all_pass_on,
            origin: None,
            behind: Behind::default(),
            workers: 1,
            http3: false,
            provider: None,
        }
    }

    /// Returns all combinations of version, group, and full or resumed.
    fn kinds_of_handshake(&self, key: KeyKind) -> Vec<Scenario> {
        let args = self.args;
        let mut kinds = Vec::new();
        for version in &args.versions {
            for groups in &args.groups {
                for resumption in &args.resumption {
                    let kind = self.scenario(key, *version, *resumption);
                    kinds.push(Scenario { groups: groups.clone(), ..kind });
                }
            }
        }
        kinds.retain(|kind| kind.version == TlsVersion::V1_3 || !kind.is_post_quantum());
        kinds
    }

    /// Returns the numbers of clients. Resumed handshakes involve little waiting, and a lone client sees the cost of
    /// ML-KEM directly: both are measured with the most clients only.
    fn clients(&self, kind: &Scenario) -> Vec<usize> {
        match kind.resumption {
            Resumption::Off if !kind.is_post_quantum() => self.args.clients.clone(),
            _ => vec![self.most_clients()],
        }
    }

    fn most_clients(&self) -> usize {
        self.args.clients.iter().copied().max().unwrap_or(1)
    }

    fn write_json(&self, name: &str, rows: &impl Serialize) -> Result<()> {
        let directory: &Path = &self.args.out;
        fs::create_dir_all(directory)?;
        let path = directory.join(name);
        fs::write(&path, serde_json::to_string_pretty(rows)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
