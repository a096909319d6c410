//! Part load.

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::Contestant,
    curve,
    h2load::H2load,
    report::{AgreementRow, Curve, curve_table},
    requests::workload::Workload,
    rival::{Job, Rival},
    scenario::{KeyKind, Resumption},
};

use super::Laboratory;

/// Requests: small responses over HTTP/1.1 and HTTP/2.
const REQUESTS: [Workload; 2] = [Workload::REQUESTS[0], Workload::REQUESTS[2]];

impl Laboratory<'_> {
    /// Measures handshakes and requests at part load, and the agreement of both generators.
    pub(crate) fn curve(&mut self) -> Result<(Vec<Curve>, Vec<AgreementRow>)> {
        let takes_part = |one: &&Contestant| one.rival.job() == Job::Answer && one.rival != Rival::Keyless;
        let contestants: Vec<Contestant> = self.contestants.iter().filter(takes_part).cloned().collect();
        let mut curves = Vec::new();
        let keys = self.args.keys();
        for kind in curve::KINDS.into_iter().filter(|(key, ..)| keys.contains(key)) {
            let measured = self.curve_of_handshakes(&contestants, kind);
            self.add(&mut curves, measured)?;
        }
        let generator = H2load::find(&self.args.h2load);
        let Ok(h2load) = generator.map_err(|error| eprintln!("requests are left out: {error:#}")) else {
            return Ok((curves, Vec::new()));
        };
        for workload in REQUESTS {
            let measured = self.curve_of_requests(&contestants, workload, &h2load);
            self.add(&mut curves, measured)?;
        }
        ensure!(!curves.is_empty(), "no server could be measured");
        Ok((curves, self.agreement(&contestants, &h2load)?))
    }

    /// Prints a curve and keeps it, or prints why it is left out.
    fn add(&self, curves: &mut Vec<Curve>, measured: Result<Curve>) -> Result<()> {
        match measured {
            Ok(curve) => {
                println!("{}\n\n{}", curve.title, curve_table(&curve));
                curves.push(curve);
                self.write_json("curve.json", curves)
            }
            Err(error) => {
                eprintln!("left out: {error:#}");
                Ok(())
            }
        }
    }

    fn curve_of_handshakes(
        &self,
        contestants: &[Contestant],
        kind: (KeyKind, &str, Resumption),
    ) -> Result<Curve> {
        let scenario = curve::scenario(kind);
        eprintln!("{scenario}, at part load");
        let certificate = CertificateFiles::make(scenario.key, self.directory.path())?;
        let stage = self.stage(&certificate, curve::CLIENTS, false);
        let started = stage.start_all(contestants, &scenario);
        let plan = self.args.plan();
        let points = curve::handshakes(plan, &scenario, &started.servers, |line| eprintln!("{line}"))?;
        Ok(Curve::of_handshakes(&scenario, contestants, &started, points))
    }

    fn curve_of_requests(
        &self,
        contestants: &[Contestant],
        workload: Workload,
        h2load: &H2load,
    ) -> Result<Curve> {
        ensure!(self.upstream.is_some(), "forwarded requests need nginx as the upstream");
        eprintln!("{workload}, at part load");
        let certificate = CertificateFiles::make(KeyKind::P256, self.directory.path())?;
        let stage = self.stage(&certificate, self.most_clients(), true);
        let started = stage.start_all(contestants, &self.p256());
        let (plan, directory) = (self.args.plan(), self.directory.path());
        let progress = |line: &str| eprintln!("{line}");
        let points = curve::requests(h2load, workload, plan, &started.servers, directory, progress)?;
        Ok(Curve::of_requests(workload, contestants, &started, points))
    }

    /// Compares both generators at one rate.
    fn agreement(&self, contestants: &[Contestant], h2load: &H2load) -> Result<Vec<AgreementRow>> {
        let scenario = curve::scenario((KeyKind::P256, "X25519", Resumption::Off));
        let certificate = CertificateFiles::make(scenario.key, self.directory.path())?;
        let stage = self.stage(&certificate, curve::CLIENTS, false);
        let started = stage.start_all(contestants, &scenario);
        let mut rows = Vec::new();
        for (rival, server) in &started.servers {
            eprintln!("{scenario}, beside h2load: {rival}");
            match curve::agreement(h2load, &scenario, server, self.args.plan()) {
                Ok(agreement) => rows.push(AgreementRow::new(*rival, &agreement)),
                Err(error) => eprintln!("{rival} is left out: {error:#}"),
            }
        }
        Ok(rows)
    }
}
