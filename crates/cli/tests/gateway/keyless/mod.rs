//! Keys on another machine: gateways, key servers, and faulty servers and clients.

mod bad_servers;
mod clients;
mod faults;
mod floods;
mod guide;
mod keys;
mod operations;
mod overflow;
mod permissions;
mod serving;
mod token_faults;
mod tokens;
mod tools;

use crate::support::{Gateway, Load, Site, eventually};

/// Further keys of a listener, with a long handshake timeout for slow machines.
const PATIENT: &str = "timeouts: {handshake: 170s, handshake_deadline: off}";

/// Runs load on a gateway during an action; fails if any request failed.
fn under_load(site: &Site, gateway: &Gateway, during: impl FnOnce(&Load)) -> usize {
    let load = Load::start(&site.certificates, gateway.address(0), "/", |body| body.starts_with("right"));
    progress(&load, 20);
    during(&load);
    progress(&load, 40);
    load.finish()
}

/// Waits for this many more responses.
fn progress(load: &Load, more: usize) {
    let goal = load.answered() + more;
    eventually("the load makes no progress", || load.answered() >= goal);
}
