//! Requests on open connections.

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::{Contestant, Started},
    h2load::H2load,
    report::{
        ProxiedRow, RequestFindings, RequestRow, proxied_rows, proxied_table, request_rows, request_table,
    },
    requests::{proxied, rounds, workload::Workload},
    rival::{Job, Rival},
    scenario::{KeyKind, Resumption, Scenario},
    upstream::Body,
};
use quadrille_profile::load::TlsVersion;

use super::Laboratory;

/// The servers that determine the rate at half load: half of the slower one's throughput.
const PACED_BY: [Rival; 2] = [Rival::Nginx, Rival::Quadrille];

/// The running servers with one job.
struct Field {
    contestants: Vec<Contestant>,
    started: Started,
}

impl Laboratory<'_> {
    /// Measures CPU and latency of requests, and of a handshake with one request.
    pub(crate) fn requests(&mut self) -> Result<RequestFindings> {
        let mut found = self.measured(&[Workload::REQUESTS.as_slice(), &Workload::DOWNLOADS].concat())?;
        found.handshakes = self.proxied_handshakes()?;
        self.write_json("requests.json", &found)?;
        Ok(found)
    }

    /// Measures downloads alone.
    pub(crate) fn downloads(&mut self) -> Result<RequestFindings> {
        self.measured(&Workload::DOWNLOADS)
    }

    /// Measures `workloads`, and those with small bodies at half load too.
    fn measured(&self, workloads: &[Workload]) -> Result<RequestFindings> {
        ensure!(self.upstream.is_some(), "forwarded requests need nginx as the upstream");
        let h2load = H2load::find(&self.args.h2load)?;
        let certificate = CertificateFiles::make(KeyKind::P256, self.directory.path())?;
        let mut found = RequestFindings { generator: h2load.version.clone(), ..RequestFindings::default() };
        for job in Job::ALL {
            let workloads = workloads.iter().copied().filter(|workload| workload.protocol.job() == job);
            let workloads: Vec<Workload> = workloads.collect();
            if workloads.is_empty() {
                continue;
            }
            let field = self.field(job, &certificate);
            for workload in workloads {
                let rows = self.rows(&h2load, workload, &field);
                let half = half_load(&rows).filter(|_| workload.body == Body::SMALL);
                found.requests.extend(rows);
                if let Some(per_second) = half {
                    found.requests.extend(self.rows(&h2load, workload.at(per_second), &field));
                }
                self.write_json("requests.json", &found)?;
            }
        }
        let any = found.requests.iter().any(|row| row.cpu_us_per_request.is_some());
        ensure!(any, "no server could be measured");
        Ok(found)
    }

    /// Measures one workload, and prints its table.
    fn rows(&self, h2load: &H2load, workload: Workload, field: &Field) -> Vec<RequestRow> {
        eprintln!("{workload}");
        let plan = self.args.plan().longer();
        let directory = self.directory.path();
        let Field { contestants, started } = field;
        let progress = |line: &str| eprintln!("{line}");
        let served = rounds::measure(h2load, workload, plan, &started.servers, directory, progress);
        let rows = request_rows(workload, contestants, &started.with_the_missing(served));
        println!("{}", request_table(workload, &rows));
        rows
    }

    /// Starts the servers with `job` and the upstream.
    fn field(&self, job: Job, certificate: &CertificateFiles) -> Field {
        let contestants = self.with_their_keys(job);
        let stage = self.stage(certificate, self.most_clients(), true);
        let started = stage.start_all(&contestants, &self.p256());
        Field { contestants, started }
    }

    /// Measures a full handshake with one request: the cost added by forwarding it.
    fn proxied_handshakes(&self) -> Result<Vec<ProxiedRow>> {
        eprintln!("handshakes with one request, served directly and forwarded");
        let certificate = CertificateFiles::make(KeyKind::P256, self.directory.path())?;
        let contestants = self.with_their_keys(Job::Answer);
        let stage = self.stage(&certificate, self.most_clients(), true);
        let progress = |line: &str| eprintln!("{line}");
        let measured = proxied::measure(self.args.plan(), &self.p256(), &contestants, &stage, progress)?;
        let rows = proxied_rows(&contestants, &measured);
        println!("{} with one request, served by the server and by its upstream", self.p256());
        println!("{}", proxied_table(&rows));
        Ok(rows)
    }

    /// Returns the servers that hold their own key: the location of the key does not affect requests.
    fn with_their_keys(&self, job: Job) -> Vec<Contestant> {
        let takes_part = |one: &&Contestant| one.rival.job() == job && one.rival != Rival::Keyless;
        self.contestants.iter().filter(takes_part).cloned().collect()
    }

    pub(super) fn p256(&self) -> Scenario {
        Scenario { requests: 1, ..self.scenario(KeyKind::P256, TlsVersion::V1_3, Resumption::Off) }
    }
}

/// Returns half of the request rate that all servers in `PACED_BY` can sustain.
fn half_load(rows: &[RequestRow]) -> Option<f64> {
    let paced_by = |row: &&RequestRow| PACED_BY.iter().any(|rival| rival.to_string() == row.server);
    let rates = rows.iter().filter(paced_by).filter_map(|row| row.requests_per_second);
    rates.min_by(f64::total_cmp).map(|rate| rate / 2.0)
}
