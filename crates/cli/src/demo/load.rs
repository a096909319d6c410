//! Built-in clients that put load on the demo.

use super::announced;
use quadrille_profile::load::{KeyChoice, Load, Offer, Outcome};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    thread,
    time::Duration,
};

/// Clients by key type. Most request RSA, whose operations gain most from batching.
const CLIENTS: [(KeyChoice, usize); 2] = [(KeyChoice::Rsa, 48), (KeyChoice::Ecdsa, 16)];
/// Share of connections that resume a session.
const RESUMED: f64 = 0.3;

/// Load from the demo's own clients, for the given time.
pub(super) struct DemoLoad {
    pub(super) time: Duration,
}

impl DemoLoad {
    /// Starts the clients, and prints their results when they end. The process may exit before that.
    pub(super) fn start(self, listener: SocketAddr) {
        println!("Clients connect for {:?}: watch the dashboard.", self.time);
        let target = SocketAddr::new(reachable(listener.ip()), listener.port());
        thread::spawn(move || match self.run(target) {
            Ok(seen) => {
                let (full, resumed, failed) = (seen.full(), seen.resumed, seen.failed());
                println!(
                    "Clients completed {full} full and {resumed} resumed handshakes, {:.0} a second; {failed} failed.",
                    seen.per_second()
                );
                announced::print_what_was_saved();
            }
            Err(problem) => eprintln!("{problem}"),
        });
    }

    fn run(&self, target: SocketAddr) -> Result<Outcome, String> {
        let loads = CLIENTS.map(|(key, connections)| Load {
            offer: Offer { key: Some(key), ..Offer::default() },
            resumed: RESUMED,
            connections,
            path: "/hello".to_owned(),
            count: u64::MAX,
            time_limit: self.time,
            ..Load::new(target, "localhost")
        });
        thread::scope(|scope| {
            let running = loads.each_ref().map(|load| scope.spawn(|| load.run()));
            let mut all = Outcome::default();
            for one in running {
                let seen = one.join().map_err(|_| "the load generator has crashed".to_owned())?;
                all.join(&seen.map_err(|error| format!("the load failed: {error}"))?);
            }
            Ok(all)
        })
    }
}

/// Returns an address at which local clients reach a listener on all addresses.
fn reachable(listening: IpAddr) -> IpAddr {
    match listening {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}
