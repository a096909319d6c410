//! A well-behaved client beside misbehaving ones.

use std::{io, net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    contestants::{Contestant, Stage},
    fair::{self, Misbehaviour, Origin, Row, Table},
    rival::{Behind, Filters, Job, Protocol},
    scenario::{KeyKind, Resumption, Scenario},
    upstream::make_folder_for_workers,
};
use quadrille_profile::load::TlsVersion;

use super::Laboratory;
use crate::args;

/// One measurement: a server with this origin beside this misbehaviour.
struct Case<'a> {
    contestant: &'a Contestant,
    variant: Variant,
    misbehaviour: Misbehaviour,
}

/// An origin, and how servers forward requests to it.
#[derive(Clone, Copy)]
struct Variant {
    origin: SocketAddr,
    behind: Behind,
}

impl Laboratory<'_> {
    /// Measures each server beside each kind of misbehaving clients.
    pub(crate) fn fair(&mut self) -> Result<Vec<Row>> {
        let time = Duration::from_secs(self.args.fair.unwrap_or(4));
        let certificate = CertificateFiles::make(KeyKind::P256, self.directory.path())?;
        let scenario = Scenario {
            clients: 1,
            requests: 1,
            ..self.scenario(KeyKind::P256, TlsVersion::V1_3, Resumption::Off)
        };
        let directory = self.directory.path().join("fair");
        make_folder_for_workers(&directory)?;
        let stage = self.stage(&certificate, fair::CONNECTIONS, false);
        let stage = Stage { directory: &directory, ..stage };
        let variants = self.variants()?;
        let kinds: Vec<_> =
            fair::all_kinds().filter(|kind| kind.name.contains(&self.args.misbehaviour)).collect();
        self.say_what_is_left_out(&variants, &kinds);
        let cases = self.cases(&variants, &kinds);
        let table = Table { with_variants: variants.iter().any(Variant::is_special) };
        let mut rows = Vec::new();
        println!("{}", table.head());
        for (number, case) in (1..).zip(&cases) {
            eprintln!("{number} of {}: {}", cases.len(), case.name());
            match fair::measure(case.contestant, &case.stage(&stage), &scenario, case.misbehaviour, time) {
                Ok(row) => {
                    println!("{}", table.line(&row));
                    rows.push(row);
                }
                Err(error) => eprintln!("{}: {error:#}", case.name()),
            }
            self.write_json("fair.json", &rows)?;
        }
        ensure!(!rows.is_empty(), "no server could be measured");
        Ok(rows)
    }

    /// Starts the origins.
    fn variants(&self) -> io::Result<Vec<Variant>> {
        let mut all = Vec::new();
        for protocol in &self.args.origin {
            let origin = Origin::start(*protocol)?.address;
            for filters in &self.args.filters {
                let filters = match filters {
                    args::Filters::Off => None,
                    args::Filters::On => Some(Filters {
                        authorization: Origin::without_bodies()?.address,
                        mirror: Origin::without_bodies()?.address,
                    }),
                };
                all.push(Variant { origin, behind: Behind { origin: *protocol, filters } });
            }
        }
        Ok(all)
    }

    /// Returns all measurements that are possible.
    fn cases(&self, variants: &[Variant], kinds: &[Misbehaviour]) -> Vec<Case<'_>> {
        let mut cases = Vec::new();
        for variant in variants {
            for misbehaviour in kinds {
                let all = self.contestants.iter().map(|contestant| Case {
                    contestant,
                    variant: *variant,
                    misbehaviour: *misbehaviour,
                });
                cases.extend(all.filter(Case::can_run));
            }
        }
        cases
    }

    /// Prints which servers are left out of which measurements, and why.
    fn say_what_is_left_out(&self, variants: &[Variant], kinds: &[Misbehaviour]) {
        for Contestant { rival, version, .. } in
            self.contestants.iter().filter(|one| one.rival.job() == Job::Answer)
        {
            if let Err(reason) = version {
                eprintln!("{rival} is left out: {reason}");
                continue;
            }
            if !rival.has_http3() && kinds.iter().any(|kind| kind.over_http3) {
                eprintln!("{rival} is left out of HTTP/3, which it does not serve here");
            }
            for variant in variants.iter().filter(|variant| !rival.forwards(&variant.behind)) {
                eprintln!("{rival} is left out of {}, for which it is not configured here", variant.name());
            }
        }
    }
}

impl Case<'_> {
    fn can_run(&self) -> bool {
        let rival = self.contestant.rival;
        rival.job() == Job::Answer
            && self.contestant.version.is_ok()
            && rival.forwards(&self.variant.behind)
            && (rival.has_http3() || !self.misbehaviour.over_http3)
            && (self.variant.behind.origin == Protocol::Http1 || !self.misbehaviour.http1_origin_only)
    }

    fn stage<'a>(&self, stage: &Stage<'a>) -> Stage<'a> {
        let Variant { origin, behind } = self.variant;
        Stage { origin: Some(origin), behind, http3: self.misbehaviour.over_http3, ..*stage }
    }

    fn name(&self) -> String {
        let variant =
            if self.variant.is_special() { format!(", {}", self.variant.name()) } else { String::new() };
        format!("{}, {}{variant}", self.misbehaviour.name, self.contestant.rival)
    }
}

impl Variant {
    /// Returns whether it is not the default.
    fn is_special(&self) -> bool {
        self.behind.origin != Protocol::Http1 || self.behind.filters.is_some()
    }

    fn name(&self) -> String {
        let filters = if self.behind.filters.is_some() { " with filters" } else { "" };
        format!("origin over {}{filters}", self.behind.origin)
    }
}
