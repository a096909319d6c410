//! Who takes part, and who of them runs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    certificate::CertificateFiles,
    rival::{Provider, Rival, Setup},
    scenario::Scenario,
    server::{Server, free_address},
    upstream::Upstream,
};

/// A server to be measured, and where its program is.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Which server.
    pub rival: Rival,
    /// Its program.
    pub program: PathBuf,
    /// Its version, or why it cannot run.
    pub version: Result<String, String>,
}

impl Contestant {
    /// Asks `program` for its version.
    pub fn new(rival: Rival, program: PathBuf) -> Self {
        let version = rival.version(&program).map_err(|error| format!("{error:#}"));
        Self { rival, program, version }
    }
}

/// What servers are started with, beside their scenario.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Cores of the servers, and of everything else.
    pub cores: [usize; 2],
    /// Key and certificate of all servers.
    pub certificate: &'a CertificateFiles,
    /// Connections that each must be able to hold.
    pub connections: usize,
    /// A place for files.
    pub directory: &'a Path,
    /// What is behind servers that need something behind them.
    pub upstream: Option<&'a Upstream>,
    /// Whether the upstream is behind all servers.
    pub all_pass_on: bool,
    /// Worker processes of servers that have such.
    pub workers: usize,
    /// Whether servers serve HTTP/3 too.
    pub http3: bool,
    /// What servers on OpenSSL load into it.
    pub provider: Option<&'a Provider>,
}

impl Stage<'_> {
    /// Starts one server, and waits until it serves what `scenario` asks for.
    pub fn start(&self, contestant: &Contestant, scenario: &Scenario) -> Result<Server> {
        let Self { cores, certificate, connections, directory, workers, http3, provider, .. } = *self;
        let behind_all = self.upstream.filter(|_| self.all_pass_on).map(|upstream| upstream.address);
        let setup = Setup {
            address: free_address()?,
            beside: free_address()?,
            version: scenario.version,
            groups: scenario.accepted_groups(),
            certificate,
            connections,
            directory,
            resumption: scenario.resumption,
            upstream: behind_all.or_else(|| Upstream::for_job(self.upstream, contestant.rival)),
            workers,
            http3,
            provider,
        };
        Server::start(contestant.rival, &contestant.program, cores, scenario, &setup)
    }

    /// Starts all that can run.
    pub fn start_all(&self, contestants: &[Contestant], scenario: &Scenario) -> Started {
        let mut started = Started { servers: Vec::new(), missing: Vec::new() };
        for contestant in contestants {
            let start = || self.start(contestant, scenario).map_err(|error| format!("{error:#}"));
            match contestant.version.clone().and_then(|_| start()) {
                Ok(server) => {
                    started.servers.push((contestant.rival, server));
                    started.missing.push(None);
                }
                Err(reason) => {
                    eprintln!("{} is left out: {reason}", contestant.rival);
                    started.missing.push(Some(reason));
                }
            }
        }
        started
    }
}

/// The servers that run, and why the others do not; one or the other for each contestant, in their order.
#[derive(Debug)]
pub struct Started {
    /// Those that run.
    pub servers: Vec<(Rival, Server)>,
    missing: Vec<Option<String>>,
}

impl Started {
    /// Results in the order of the contestants, with the reasons of those that do not run in between.
    pub fn with_the_missing<T>(&self, results: Vec<T>) -> Vec<Result<T, String>> {
        let mut results = results.into_iter();
        self.missing
            .iter()
            .filter_map(|missing| match missing {
                Some(reason) => Some(Err(reason.clone())),
                None => results.next().map(Ok),
            })
            .collect()
    }
}
