//! Handshakes whose single request is forwarded to the upstream, compared with requests served by the server itself.

use std::fmt;

use anyhow::Result;

use crate::{
    contestants::{Contestant, Stage, Started},
    rival::Rival,
    rounds::{Measured, Plan},
    scenario::Scenario,
    server::Server,
    upstream::make_folder_for_workers,
};

/// Results of each contestant, or the reason that it did not run.
#[derive(Debug)]
pub struct Proxied {
    /// Results with a fixed response.
    pub fixed: Vec<Result<Measured, String>>,
    /// Results with the upstream.
    pub proxied: Vec<Result<Measured, String>>,
}

/// A server's name in a round's line.
#[derive(Clone, Copy, Debug)]
struct Label {
    rival: Rival,
    proxied: bool,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.rival, if self.proxied { " + upstream" } else { "" })
    }
}

/// Measures `contestants` in interleaved rounds, each with and without the upstream of `stage`.
pub fn measure(
    plan: Plan,
    scenario: &Scenario,
    contestants: &[Contestant],
    stage: &Stage<'_>,
    progress: impl FnMut(&str),
) -> Result<Proxied> {
    let mut fixed = Stage { all_pass_on: false, ..*stage }.start_all(contestants, scenario);
    // Each server has a directory for its files, whose names would collide.
    let directory = stage.directory.join("proxied");
    make_folder_for_workers(&directory)?;
    let stage = Stage { all_pass_on: true, directory: &directory, ..*stage };
    let mut proxied = stage.start_all(contestants, scenario);
    let servers = [labelled(&mut fixed, false), labelled(&mut proxied, true)];
    let of_fixed = servers[0].len();
    let servers: Vec<_> = servers.into_iter().flatten().collect();
    let mut measured = plan.measure(scenario, &servers, progress)?;
    let of_proxied = measured.split_off(of_fixed);
    Ok(Proxied { fixed: fixed.with_the_missing(measured), proxied: proxied.with_the_missing(of_proxied) })
}

fn labelled(started: &mut Started, proxied: bool) -> Vec<(Label, Server)> {
    started.servers.drain(..).map(|(rival, server)| (Label { rival, proxied }, server)).collect()
}
