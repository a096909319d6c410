//! Several gateways with one Redis: sessions of one gateway are resumed on another.

mod boundaries;
mod early_data;
mod faults;
mod guide;
mod kinds;
mod load;
mod other_clients;
mod quic;
mod rotation;
mod tickets;

use crate::support::{
    Certificates, Gateway, Pair, Redis, Returning, Way, eventually, output, quadrille, succeed,
};
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// The flag for the lookup timeout.
const LOOKUP_LIMIT: &str = "--session-lookup-timeout";

/// Gateways that share a Redis and a secret.
struct Fleet {
    redis: Redis,
    /// Flags for Redis of gateways that join.
    address: String,
    gateways: Vec<Gateway>,
    certificates: Certificates,
    pair: Pair,
    secret: PathBuf,
}

impl Fleet {
    fn new(size: usize, flags: &[&str]) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let secret = certificates.path("fleet.secret");
        succeed(quadrille("tickets").arg("generate").arg(&secret));
        let redis = Redis::start();
        let (address, gateways) = (redis.address(), Vec::new());
        let mut fleet = Self { redis, address, gateways, certificates, pair, secret };
        (0..size).for_each(|_| fleet.join(flags));
        fleet
    }

    /// Adds a gateway.
    fn join(&mut self, flags: &[&str]) {
        self.join_ahead(0, flags);
    }

    /// Adds a gateway whose clock is this many seconds ahead.
    fn join_ahead(&mut self, seconds: u32, flags: &[&str]) {
        let secret = self.secret.to_str().expect("UTF-8");
        let answer: &[&str] = if flags.contains(&"--upstream") { &[] } else { &["--respond", "ok"] };
        let shared = ["--session-cache", &self.address, "--fleet-secret", secret];
        let tickets = ["--session-tickets", "fleet", "--threads", "1"];
        // The default timeout of 20 ms is for a fast machine.
        let lookup: &[&str] = if flags.contains(&LOOKUP_LIMIT) { &[] } else { &[LOOKUP_LIMIT, "10s"] };
        let flags = [answer, &shared, &tickets, lookup, flags].concat();
        let start = || match seconds {
            0 => Gateway::with_flags(&self.pair, &flags),
            _ => Gateway::ahead(seconds, &self.certificates.path(""), &self.pair, &flags),
        };
        // A gateway starts without the fleet if Redis does not respond in time, which may happen on a slow machine.
        let mut gateway = start();
        eventually("it does not join the fleet", || {
            let joins = !gateway.log().contains("no ticket keys from the fleet yet") || !self.has_redis();
            if !joins {
                gateway = start();
            }
            joins
        });
        self.gateways.push(gateway);
    }

    fn has_redis(&self) -> bool {
        let port = self.redis.port().to_string();
        output(Command::new("redis-cli").args(["-p", &port, "ping"])).1.contains("PONG")
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.gateways.iter().map(|gateway| gateway.address(0)).collect()
    }

    fn client(&self, way: Way) -> Returning {
        Returning::new(&self.certificates, way)
    }

    /// Waits until this share of some visits to any of the gateways is resumed, however slow the machine is at first.
    /// No visit may fail meanwhile. Visits are required: a gateway detects that Redis has recovered by querying it.
    #[track_caller]
    fn wait_for_resumption(&self, way: Way, share: f64) {
        let (addresses, client) = (self.addresses(), self.client(way));
        eventually("sessions are not resumed again", || {
            let tally = return_until(&addresses, &client, 4, |visits| visits >= 100);
            tally.expect(0.0, "until Redis responds");
            tally.share() >= share
        });
    }

    /// Returns the sum over all gateways.
    fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        self.gateways.iter().map(|gateway| gateway.metric(name, labels)).sum()
    }

    fn logs(&self) -> String {
        self.gateways.iter().map(Gateway::log).collect()
    }
}

/// Results of returning clients.
#[derive(Default)]
struct Tally {
    resumed: AtomicUsize,
    full: AtomicUsize,
    failures: std::sync::Mutex<Vec<String>>,
    /// Durations in microseconds.
    slowest: AtomicUsize,
}

impl Tally {
    fn count(&self, visit: &io::Result<bool>, began: Instant) {
        let took = usize::try_from(began.elapsed().as_micros()).unwrap_or(usize::MAX);
        self.slowest.fetch_max(took, Ordering::Relaxed);
        match visit {
            Ok(true) => drop(self.resumed.fetch_add(1, Ordering::Relaxed)),
            Ok(false) => drop(self.full.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.failures.lock().expect("failures").push(error.to_string()),
        }
    }

    fn share(&self) -> f64 {
        let resumed = self.resumed.load(Ordering::Relaxed) as f64;
        resumed / (resumed + self.full.load(Ordering::Relaxed) as f64).max(1.0)
    }

    #[track_caller]
    fn expect(&self, share: f64, what: &str) {
        let failures = self.failures.lock().expect("failures");
        assert!(failures.is_empty(), "{what}: {} failed: {:?}", failures.len(), failures.first());
        let slowest = Duration::from_micros(self.slowest.load(Ordering::Relaxed) as u64);
        let counts = (self.resumed.load(Ordering::Relaxed), self.full.load(Ordering::Relaxed));
        println!("{what}: {:.2} % resumed of {counts:?}, slowest {slowest:?}", 100.0 * self.share());
        assert!(self.share() >= share, "{what}: {:.2} % resumed, {counts:?}", 100.0 * self.share());
    }
}

/// Runs a few clients that reconnect repeatedly, each time to any of the gateways, until `done`. The first visit of
/// each is not counted.
fn return_until(
    addresses: &[SocketAddr],
    client: &Returning,
    clients: usize,
    done: impl Fn(usize) -> bool + Sync,
) -> Tally {
    let (tally, visits, over) = (Tally::default(), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for index in 0..clients {
            let (tally, visits, over, done) = (&tally, &visits, &over, &done);
            scope.spawn(move || {
                let mut random = index as u64 + 1;
                let mut session = None;
                let mut any = move || {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    addresses[(random >> 33) as usize % addresses.len()]
                };
                tally.failures.lock().expect("failures").extend(
                    client.visit(any(), &mut session).err().map(|error| format!("first visit: {error}")),
                );
                while !over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    tally.count(&client.visit(any(), &mut session), began);
                    if done(visits.fetch_add(1, Ordering::Relaxed)) {
                        over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    tally
}

/// Checks that clients that reconnect for this time resume this share of their visits. On a slow machine this is
/// repeated; a failed visit fails the test each time.
#[track_caller]
fn resumes_for(addresses: &[SocketAddr], client: &Returning, time: Duration, share: f64, what: &str) {
    eventually(&format!("{what}: too few visits are resumed"), || {
        let end = Instant::now() + time;
        let tally = return_until(addresses, client, 4, |_| Instant::now() >= end);
        tally.expect(0.0, what);
        tally.share() >= share
    });
}
