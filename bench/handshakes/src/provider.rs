//! CPU savings of this project's OpenSSL provider in unmodified servers: each is compared with itself without the
//! provider, with the same number of workers, on the same core. With the provider, the key server counts too.

use std::fmt;

use anyhow::Result;

use crate::{
    contestants::{Contestant, Stage},
    cross_check::Side,
    h2load::H2load,
    rival::Rival,
    rounds::{Measured, Plan},
    scenario::Scenario,
    server::Server,
};

/// A server with a number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The server.
    pub rival: Rival,
    /// Number of worker processes; HAProxy has threads, and here one thread.
    pub workers: usize,
}

/// Returns the contenders: HAProxy and nginx with our module, whose single thread serves other connections while
/// operations are computed, and nginx, whose workers block on theirs.
pub fn contenders(with_nginx_module: bool, workers: &[usize]) -> Vec<Contender> {
    let one = with_nginx_module.then_some(&1);
    let nginx = one.into_iter().chain(workers);
    let nginx = nginx.map(|workers| Contender { rival: Rival::Nginx, workers: *workers });
    [Contender { rival: Rival::Haproxy, workers: 1 }].into_iter().chain(nginx).collect()
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.workers {
            1 => write!(f, "{}", self.rival),
            workers => write!(f, "{}, {workers} workers", self.rival),
        }
    }
}

/// Name of a contender in a round's line.
#[derive(Clone, Copy, Debug)]
struct Label {
    contender: Contender,
    with_provider: bool,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.contender, if self.with_provider { " + provider" } else { "" })
    }
}

/// Contenders that run, each without the provider and with it, in alternation.
#[derive(Debug)]
pub struct Pairs {
    servers: Vec<(Label, Server)>,
    /// Contenders that do not run, with the reason.
    pub missing: Vec<(Contender, String)>,
}

/// One contender without the provider and with it.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The contender.
    pub contender: Contender,
    /// Measured with its own OpenSSL.
    pub alone: Measured,
    /// Measured with the provider.
    pub with_provider: Measured,
}

impl Pairs {
    /// Starts those `contenders` that have a program in `of`, in directories of their own. `stage` has the provider.
    pub fn start(
        contenders: &[Contender],
        of: &[Contestant],
        stage: &Stage<'_>,
        scenario: &Scenario,
    ) -> Self {
        let mut pairs = Self { servers: Vec::new(), missing: Vec::new() };
        for contender in contenders {
            let Some(contestant) = of.iter().find(|one| one.rival == contender.rival) else { continue };
            let start = || {
                contestant.version.clone().map_err(anyhow::Error::msg)?;
                let alone = pairs_half(*contender, false, contestant, stage, scenario)?;
                Ok::<_, anyhow::Error>([alone, pairs_half(*contender, true, contestant, stage, scenario)?])
            };
            match start() {
                Ok(pair) => pairs.servers.extend(pair),
                Err(error) => {
                    eprintln!("{contender} is left out: {error:#}");
                    pairs.missing.push((*contender, format!("{error:#}")));
                }
            }
        }
        pairs
    }

    /// Measures in interleaved rounds.
    pub fn measure(&self, plan: Plan, scenario: &Scenario) -> Result<Vec<Pair>> {
        let measured = plan.measure(scenario, &self.servers, |line| eprintln!("{line}"))?;
        Ok(self.paired(measured))
    }

    /// Measures DHE_RSA in interleaved rounds, with h2load: BoringSSL no longer supports it.
    pub fn measure_dhe(&self, plan: Plan, scenario: &Scenario, h2load: &H2load) -> Vec<Pair> {
        let sides = h2load.dhe(scenario, &self.servers, plan, |line| eprintln!("{line}"));
        self.paired(sides.into_iter().map(Measured::from).collect())
    }

    fn paired(&self, measured: Vec<Measured>) -> Vec<Pair> {
        let mut measured = measured.into_iter();
        let mut pairs = Vec::new();
        for (label, _) in self.servers.iter().step_by(2) {
            if let (Some(alone), Some(with_provider)) = (measured.next(), measured.next()) {
                pairs.push(Pair { contender: label.contender, alone, with_provider });
            }
        }
        pairs
    }
}

fn pairs_half(
    contender: Contender,
    with_provider: bool,
    contestant: &Contestant,
    stage: &Stage<'_>,
    scenario: &Scenario,
) -> Result<(Label, Server)> {
    let label = Label { contender, with_provider };
    let name = format!("{}-{}-{with_provider}", contender.rival, contender.workers);
    let directory = stage.directory.join(name);
    crate::upstream::make_folder_for_workers(&directory)?;
    let stage = Stage {
        directory: &directory,
        workers: contender.workers,
        provider: stage.provider.filter(|_| with_provider),
        ..*stage
    };
    Ok((label, stage.start(contestant, scenario)?))
}

impl From<(Side, Option<String>)> for Measured {
    fn from((side, gave_up): (Side, Option<String>)) -> Self {
        Self {
            cpu_us_per_handshake: side.cpu_us_per_handshake,
            handshakes_per_second: side.handshakes_per_second,
            server_busy: side.server_busy,
            gave_up,
            ..Self::default()
        }
    }
}
