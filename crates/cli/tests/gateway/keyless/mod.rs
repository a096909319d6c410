//! The key on another machine: real gateways, real key servers, and servers and clients that misbehave.

mod bad_servers;
mod clients;
mod faults;
mod floods;
mod guide;
mod keys;
mod operations;
mod overflow;
mod serving;
mod tools;

use crate::support::{Gateway, Load, Site, eventually};

/// Further keys of a listener: a slow machine may take its time for a handshake.
const PATIENT: &str = "timeouts: {handshake: 170s, handshake_deadline: off}";

/// Load on a gateway for some time while something happens; fails if any request did.
fn under_load(site: &Site, gateway: &Gateway, during: impl FnOnce(&Load)) -> usize {
    let load = Load::start(&site.certificates, gateway.address(0), "/", |body| body.starts_with("right"));
    progress(&load, 20);
    during(&load);
    progress(&load, 40);
    load.finish()
}

/// Waits for so many more answers.
fn progress(load: &Load, more: usize) {
    let goal = load.answered() + more;
    eventually("the load does not come on", || load.answered() >= goal);
}
