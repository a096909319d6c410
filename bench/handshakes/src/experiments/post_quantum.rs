//! Full handshakes with ML-DSA-44, beside P-256 in the same rounds.

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::Contestant,
    report::{PostQuantumRow, Served, post_quantum_rows, post_quantum_table},
    rival::{Job, Rival},
    scenario::{KeyKind, Resumption, Scenario},
};
use quadrille_profile::load::TlsVersion;

use super::Laboratory;

const GROUP: &str = "X25519MLKEM768";

impl Laboratory<'_> {
    /// Measures CPU per handshake with each kind of key, in servers that respond themselves.
    pub(crate) fn post_quantum(&mut self) -> Result<Vec<PostQuantumRow>> {
        let plan = self.args.plan();
        let contestants = self.responding();
        let (mut servers, mut missing) = (Vec::new(), Vec::new());
        let scenario = |key| Scenario {
            groups: GROUP.to_owned(),
            ..self.scenario(key, TlsVersion::V1_3, Resumption::Off)
        };
        for key in [KeyKind::MlDsa44, KeyKind::P256] {
            let certificate = CertificateFiles::make(key, self.directory.path())?;
            let stage = self.stage(&certificate, self.most_clients(), false);
            for contestant in &contestants {
                let served =
                    Served { rival: contestant.rival, key, version: contestant.version.clone().ok() };
                let start = || {
                    let one = Scenario { clients: 1, ..scenario(key) };
                    stage.start(contestant, &one).map_err(|error| format!("{error:#}"))
                };
                match contestant.version.clone().and_then(|_| start()) {
                    Ok(server) => servers.push((served, server)),
                    Err(reason) => {
                        eprintln!("{served} is left out: {reason}");
                        missing.push((served, reason));
                    }
                }
            }
        }
        // Clients offer both kinds of signatures in any case.
        let scenario = scenario(KeyKind::MlDsa44);
        eprintln!("{scenario}, and P-256");
        let results = plan.measure(&scenario, &servers, |line| eprintln!("{line}"))?;
        let measured: Vec<_> = servers.into_iter().map(|(served, _)| served).zip(results).collect();
        let rows = post_quantum_rows(&measured, &missing);
        println!("{scenario}, beside P-256\n{}", post_quantum_table(&rows));
        self.write_json("post-quantum.json", &rows)?;
        ensure!(rows.iter().any(|row| row.cpu_us_per_handshake.is_some()), "no server could be measured");
        Ok(rows)
    }

    /// Returns the contestants that respond themselves and have their key, and the server on rustls.
    fn responding(&self) -> Vec<Contestant> {
        let responds = |one: &&Contestant| one.rival.job() == Job::Answer && one.rival != Rival::Keyless;
        let mut contestants: Vec<_> = self.contestants.iter().filter(responds).cloned().collect();
        if contestants.iter().all(|one| one.rival != Rival::Rustls) {
            contestants.push(Contestant::new(Rival::Rustls, self.args.program(Rival::Rustls)));
        }
        contestants
    }
}
