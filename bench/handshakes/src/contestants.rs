//! The servers that are compared, and those that can run.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    certificate::CertificateFiles,
    rival::{Behind, Provider, Rival, Setup},
    scenario::Scenario,
    server::{Server, free_address},
    upstream::Upstream,
};

/// A server to be measured, and the path of its program.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// The server.
    pub rival: Rival,
    /// Path of its program.
    pub program: PathBuf,
    /// Version, or the reason that it cannot run.
    pub version: Result<String, String>,
}

impl Contestant {
    /// Determines the version by running `program`.
    pub fn new(rival: Rival, program: PathBuf) -> Self {
        let version = rival.version(&program).map_err(|error| format!("{error:#}"));
        Self { rival, program, version }
    }
}

/// Start parameters of servers, in addition to the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Core of the servers, and core of all other processes.
    pub cores: [usize; 2],
    /// Key and certificate of all servers.
    pub certificate: &'a CertificateFiles,
    /// Connections that each server must be able to hold.
    pub connections: usize,
    /// Directory for files.
    pub directory: &'a Path,
    /// Upstream of servers that require one.
    pub upstream: Option<&'a Upstream>,
    /// Whether all servers forward to the upstream.
    pub all_pass_on: bool,
    /// Another server that all servers forward to.
    pub origin: Option<SocketAddr>,
    /// Forwarding of requests to it.
    pub behind: Behind,
    /// Number of worker processes, for servers that have workers.
    pub workers: usize,
    /// Whether servers serve HTTP/3 too.
    pub http3: bool,
    /// Provider that servers on OpenSSL load.
    pub provider: Option<&'a Provider>,
}

impl Stage<'_> {
    /// Starts one server, and waits until it completes a handshake of `scenario`.
    pub fn start(&self, contestant: &Contestant, scenario: &Scenario) -> Result<Server> {
        let Self { cores, certificate, connections, directory, behind, workers, http3, provider, .. } = *self;
        let behind_all =
            self.upstream.filter(|_| self.all_pass_on).map(|upstream| upstream.address).or(self.origin);
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
            behind,
            workers,
            http3,
            provider,
        };
        Server::start(contestant.rival, &contestant.program, cores, scenario, &setup)
    }

    /// Starts all servers that can run.
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

/// The running servers, and the reasons that others do not run; one or the other for each contestant, in their order.
#[derive(Debug)]
pub struct Started {
    /// The running servers.
    pub servers: Vec<(Rival, Server)>,
    missing: Vec<Option<String>>,
}

impl Started {
    /// Returns the results in the order of the contestants, with the reason for each one that does not run.
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
