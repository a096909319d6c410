//! Clients of the demonstration's own, so that there is something to see.

use super::announced;
use quadrille_profile::load::{KeyChoice, Load, Offer, Outcome};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    thread,
    time::Duration,
};

/// Of them most ask for RSA, whose operations are worth a batch.
const CLIENTS: [(KeyChoice, usize); 2] = [(KeyChoice::Rsa, 48), (KeyChoice::Ecdsa, 16)];
/// How many come back with a session.
const RESUMED: f64 = 0.3;

/// How long they come.
pub(super) struct DemoLoad {
    pub(super) time: Duration,
}

impl DemoLoad {
    /// Starts them, and says at their end what they have seen. The process may end before them.
    pub(super) fn start(self, listener: SocketAddr) {
        println!("Clients come for {:?}: watch the dashboard.", self.time);
        let target = SocketAddr::new(reachable(listener.ip()), listener.port());
        thread::spawn(move || match self.run(target) {
            Ok(seen) => {
                let (full, resumed, failed) = (seen.full(), seen.resumed, seen.failed());
                println!(
                    "They have made {full} full and {resumed} resumed handshakes, {:.0} a second; {failed} failed.",
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
                let seen = one.join().map_err(|_| "the load has crashed".to_owned())?;
                all.join(&seen.map_err(|error| format!("the load failed: {error}"))?);
            }
            Ok(all)
        })
    }
}

/// Where somebody on this machine finds a listener of all addresses.
fn reachable(listening: IpAddr) -> IpAddr {
    match listening {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}
