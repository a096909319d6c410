//! A well-behaved client beside misbehaving ones.

use std::time::Duration;

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::Stage,
    fair::{self, Misbehaviour, Origin, Row},
    rival::Job,
    scenario::{KeyKind, Resumption, Scenario},
    upstream::make_folder_for_workers,
};
use quadrille_profile::load::TlsVersion;

use super::Laboratory;

impl Laboratory<'_> {
    /// Measures each server beside each kind of misbehaving clients.
    pub(crate) fn fair(&mut self) -> Result<Vec<Row>> {
        let time = Duration::from_secs(self.args.fair.unwrap_or(4));
        let origin = Origin::start()?;
        let certificate = CertificateFiles::make(KeyKind::P256, self.directory.path())?;
        let scenario = Scenario {
            clients: 1,
            requests: 1,
            ..self.scenario(KeyKind::P256, TlsVersion::V1_3, Resumption::Off)
        };
        let directory = self.directory.path().join("fair");
        make_folder_for_workers(&directory)?;
        let stage = Stage {
            directory: &directory,
            origin: Some(origin.address),
            ..self.stage(&certificate, fair::CONNECTIONS, false)
        };
        let chosen = Misbehaviour::ALL.iter().filter(|one| one.name.contains(&self.args.misbehaviour));
        let mut rows = Vec::new();
        println!("{}", Row::HEAD);
        for misbehaviour in chosen {
            for contestant in self.contestants.iter().filter(|one| one.rival.job() == Job::Answer) {
                match fair::measure(contestant, &stage, &scenario, misbehaviour, time) {
                    Ok(row) => {
                        println!("{row}");
                        rows.push(row);
                    }
                    Err(error) => eprintln!("{}, {}: {error:#}", misbehaviour.name, contestant.rival),
                }
                self.write_json("fair.json", &rows)?;
            }
        }
        ensure!(!rows.is_empty(), "no server could be measured");
        Ok(rows)
    }
}
