//! HTTP/3 experiments.

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::{Contestant, Stage},
    http3::{
        one_queue,
        rounds::{self, Workload},
    },
    report::{Http3Row, http3_rows, http3_table},
    rival::Rival,
    scenario::{KeyKind, Resumption, Scenario},
};
use quadrille_profile::load::TlsVersion;

use super::Laboratory;

impl Laboratory<'_> {
    /// Runs all HTTP/3 experiments.
    pub(crate) fn http3(&mut self) -> Result<()> {
        let rows = self.http3_workloads()?;
        self.write_json("http3.json", &rows)?;
        self.one_queue()
    }

    /// Measures CPU of handshakes, requests and bytes over QUIC. Servers issue tickets, as by default, and clients do
    /// not use them.
    fn http3_workloads(&self) -> Result<Vec<Http3Row>> {
        ensure!(self.upstream.is_some(), "forwarded requests need nginx as the upstream");
        let speaks = |one: &&Contestant| one.rival.has_http3();
        let contestants: Vec<Contestant> = self.contestants.iter().filter(speaks).cloned().collect();
        let plan = self.args.plan();
        let mut found = Vec::new();
        for workload in Workload::ALL {
            eprintln!("{workload}");
            let certificate = CertificateFiles::make(workload.key(), self.directory.path())?;
            let stage = self.stage(&certificate, self.most_clients(), workload.is_passed_on());
            let scenario = self.scenario(workload.key(), TlsVersion::V1_3, Resumption::On);
            let started = Stage { http3: true, ..stage }.start_all(&contestants, &scenario);
            let progress = |line: &str| eprintln!("{line}");
            let served = rounds::measure(workload, &self.args.groups[0], plan, &started.servers, progress);
            let rows = http3_rows(workload, &contestants, &started.with_the_missing(served));
            println!("{}", http3_table(workload, &rows));
            found.extend(rows);
        }
        ensure!(found.iter().any(|row| row.cpu_us.is_some()), "no server could be measured");
        Ok(found)
    }

    /// Measures the mean batch of the gateway's private-key operations, with TCP alone and with TCP and QUIC.
    pub(crate) fn one_queue(&self) -> Result<()> {
        let ours = |one: &&Contestant| one.rival == Rival::Quadrille;
        let Some(gateway) = self.contestants.iter().find(ours) else { return Ok(()) };
        eprintln!("one queue for TCP and QUIC");
        let certificate = CertificateFiles::make(KeyKind::Rsa2048, self.directory.path())?;
        let scenario = self.scenario(KeyKind::Rsa2048, TlsVersion::V1_3, Resumption::Off);
        let scenario = Scenario { requests: 1, ..scenario };
        let stage = self.stage(&certificate, self.most_clients(), false);
        let server = Stage { http3: true, ..stage }.start(gateway, &scenario)?;
        let progress = |line: &str| eprintln!("{line}");
        let found = one_queue::measure(self.args.plan(), &server, &scenario, progress)?;
        println!(
            "RSA-2048, operations in a batch: 32 clients by TCP {:.2}, 16 by TCP and 16 by QUIC {:.2}, ratio {:.2} \
             ({:.2}..{:.2}), {:.0} % of the handshakes by QUIC; 16 by TCP and {:.0} by QUIC {:.2}, ratio {:.2} \
             ({:.2}..{:.2})",
            found.by_tcp.median,
            found.by_both.median,
            found.ratio.median,
            found.ratio.min,
            found.ratio.max,
            found.quic_share.median * 100.0,
            found.even_clients.median,
            found.by_even.median,
            found.even_ratio.median,
            found.even_ratio.min,
            found.even_ratio.max
        );
        self.write_json("one-queue.json", &found)
    }
}
