//! Handshakes whose one request goes to the upstream, beside those that the server answers by itself.

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

/// What each of the contestants did, or why it did not run.
#[derive(Debug)]
pub struct Proxied {
    /// With a fixed answer.
    pub fixed: Vec<Result<Measured, String>>,
    /// With the upstream behind it.
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

/// Interleaved rounds of `contestants`, each with and without the upstream of `stage`.
pub fn measure(
    plan: Plan,
    scenario: &Scenario,
    contestants: &[Contestant],
    stage: &Stage<'_>,
    progress: impl FnMut(&str),
) -> Result<Proxied> {
    let mut fixed = Stage { all_pass_on: false, ..*stage }.start_all(contestants, scenario);
    // Each server has its files in a folder, under names that would be the same.
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
