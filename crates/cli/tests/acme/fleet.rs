//! Certificates in a fleet: one gateway orders, and all serve.

use crate::{
    authority::{
        Behaviour, PATIENCE, Pebble, leaf, secrets, shown, wait_for_certificate, wait_for_certificate_at,
    },
    support::{Certificates, Gateway, Redis, eventually, ports, quadrille, succeed, throughout},
};
use std::{
    fs, io,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

const NAME: &str = "all.example.com";

/// The lease of the gateway that orders.
const LEASE: &str = "*:lease";

/// Gateways with separate state directories that share a Redis and a secret, behind a load balancer on the ports that
/// the authority validates.
pub struct Fleet {
    pub pebble: Pebble,
    redis: Redis,
    certificates: Certificates,
    challenges: &'static str,
    /// Further keys of `acme`, such as `, fleet: off`.
    more: String,
    pub gateways: Vec<Gateway>,
    tls_ports: Vec<u16>,
}

impl Fleet {
    /// The authority is down until it is [run](Self::authority_begins).
    pub fn start(size: usize, challenges: &'static str, more: &str) -> Option<Self> {
        let pebble = Pebble::prepare()?;
        let certificates = Certificates::new();
        succeed(quadrille("tickets").arg("generate").arg(certificates.path("fleet.secret")));
        let [tls_ports, plain_ports] = [(); 2].map(|()| [(); 3].map(|()| ports::free()).to_vec());
        balance(pebble.tls_port, tls_ports.clone());
        balance(pebble.http_port, plain_ports.clone());
        let redis = Redis::start();
        let more = more.to_owned();
        let mut fleet =
            Self { pebble, redis, certificates, challenges, more, gateways: Vec::new(), tls_ports };
        for (index, port) in plain_ports.into_iter().enumerate() {
            fleet.configure(index, port);
        }
        (0..size).for_each(|index| fleet.gateways.push(Gateway::with_config(&fleet.file(index), 2)));
        Some(fleet)
    }

    pub fn file(&self, index: usize) -> PathBuf {
        self.pebble.path(&format!("gateway-{index}.yaml"))
    }

    pub fn state(&self, index: usize) -> PathBuf {
        self.pebble.path(&format!("state-{index}"))
    }

    fn configure(&self, index: usize, plain_port: u16) {
        let [ca, secret, state] =
            [self.pebble.ca(), self.certificates.path("fleet.secret"), self.state(index)]
                .map(|path| path.display().to_string());
        let text = format!(
            "admin: 127.0.0.1:0\n\
             acme: {{ directory: \"{}\", ca_file: {ca}, state: {state}, challenges: [{}]{} }}\n\
             resumption: {{ tickets: fleet, cache: \"{}\", fleet_secret: {secret} }}\n\
             listeners:\n  - address: 127.0.0.1:{}\n    certificates: [ {{ acme: {{ names: [{NAME}] }} }} ]\n    \
             respond: hello\n  - address: 127.0.0.1:{plain_port}\n    tls: off\n    respond: hello\n",
            self.pebble.url(),
            self.challenges,
            self.more,
            self.redis.address(),
            self.tls_ports[index],
        );
        fs::write(self.file(index), text).expect("writing");
    }

    pub fn authority_begins(&mut self) -> PathBuf {
        let behaviour = Behaviour::default();
        self.pebble.configure(&behaviour);
        self.pebble.run(&behaviour);
        self.pebble.root()
    }

    /// Adds a new gateway.
    pub fn join(&mut self) {
        self.gateways.push(Gateway::with_config(&self.file(self.gateways.len()), 2));
    }

    /// Waits until all gateways serve the same certificate, different from `before`; returns the time between the
    /// first gateway and the last.
    #[track_caller]
    pub fn all_serve(&self, root: &std::path::Path, before: &str) -> (String, Duration) {
        let (mut first, mut leaves) = (None, Vec::new());
        let end = Instant::now() + PATIENCE;
        while leaves.len() < self.gateways.len() || leaves.iter().any(|leaf| *leaf != leaves[0]) {
            assert!(Instant::now() < end, "not all gateways serve one certificate:\n{}", self.logs());
            thread::sleep(Duration::from_millis(20));
            let served = self.gateways.iter().map(|gateway| shown(gateway.address(0), root, NAME, &[]));
            leaves =
                served.flatten().map(|text| leaf(&text).to_owned()).filter(|leaf| leaf != before).collect();
            if !leaves.is_empty() {
                first.get_or_insert_with(Instant::now);
            }
        }
        (leaves.swap_remove(0), first.expect("a moment").elapsed())
    }

    pub fn logs(&self) -> String {
        self.gateways.iter().map(Gateway::log).collect()
    }

    fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        self.gateways.iter().map(|gateway| gateway.metric(name, labels)).sum()
    }

    pub fn renew(&self, index: usize) {
        succeed(quadrille("cert").args(["renew", NAME, "--config"]).arg(self.file(index)));
    }

    /// Returns the Redis key of the certificate.
    fn record(&self) -> String {
        let keys = self.redis.cli(&["KEYS", "quadrille:*:record:certificates/*"]);
        keys.lines().next().unwrap_or_else(|| panic!("no record: {keys}")).to_owned()
    }

    fn signal(pid: &str, name: &str) {
        succeed(Command::new("kill").args([&format!("-{name}"), pid.trim()]));
    }
}

/// Expires the lease of a dead process in Redis at once; it would expire by itself after 20 seconds.
pub fn end_lease_soon(redis: &Redis) {
    let keys = redis.cli(&["KEYS", LEASE]);
    for key in keys.lines().filter(|key| !key.is_empty()) {
        let left = redis.cli(&["PTTL", key]);
        let left: i64 = left.trim().parse().expect("milliseconds");
        // -2: it has expired meanwhile. -1: it would never expire.
        assert!(left == -2 || (0..=20_000).contains(&left), "{key}: {left}");
        redis.cli(&["PEXPIRE", key, "100"]);
    }
}

/// Relays each connection to the next server that is up. It ends with the test.
fn balance(port: u16, servers: Vec<u16>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port of validations");
    thread::spawn(move || {
        let mut next = 0;
        for client in listener.incoming().map_while(Result::ok) {
            let up = (0..servers.len()).find_map(|step| {
                let index = (next + step) % servers.len();
                Some((index, TcpStream::connect(("127.0.0.1", servers[index])).ok()?))
            });
            let Some((index, server)) = up else { continue };
            next = index + 1;
            let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
                continue;
            };
            for (mut from, mut to) in [(from_client, server), (from_server, client)] {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
}

#[test]
fn one_orders_by_handshakes_that_any_gateway_answers_and_all_serve() {
    let Some(mut fleet) = Fleet::start(3, "tls-alpn-01", "") else { return };
    let root = fleet.authority_begins();
    let (first, took) = fleet.all_serve(&root, "");
    println!("the last of three gateways served it {took:?} after the first");
    assert_eq!(fleet.pebble.issued(), 1, "{}", fleet.logs());
    let issued = |fleet: &Fleet| fleet.metric("quadrille_acme_orders_total", &["issued"]);
    eventually("the order is not counted", || issued(&fleet) == 1.0);
    eventually("a gateway does not reach the fleet", || {
        fleet.metric("quadrille_acme_fleet_reachable", &[]) == 3.0
    });
    let asked = |gateway: &&Gateway| gateway.log().contains("a certificate authority has validated a name");
    // The authority validates from several perspectives.
    eventually("only one gateway received validation requests", || {
        fleet.gateways.iter().filter(asked).count() >= 2
    });

    fleet.renew(1);
    let (_, took) = fleet.all_serve(&root, &first);
    println!("and {took:?} when it was renewed");
    assert_eq!(fleet.pebble.issued(), 2, "{}", fleet.logs());
    eventually("the renewal is not counted", || issued(&fleet) == 2.0);

    let secrets = secrets(&fleet.state(0));
    assert_eq!(secrets.len(), 2, "an account and a certificate");
    assert!(secrets.iter().all(|secret| self::secrets(&fleet.state(2)).contains(secret)), "all have them");
    let values = "local all = {} for _, name in ipairs(redis.call('KEYS', '*:record:*')) do \
                  all[#all + 1] = redis.call('GET', name) end return all";
    let redis = Command::new("redis-cli")
        .args(["-p", &fleet.redis.port().to_string(), "EVAL", values, "0"])
        .output()
        .expect("redis-cli");
    let redis = String::from_utf8_lossy(&redis.stdout).into_owned();
    assert!(redis.len() > 2000 && !redis.contains("BEGIN"), "{redis}");
    let pages = ["/metrics", "/status", "/config"];
    let pages: String = fleet
        .gateways
        .iter()
        .flat_map(|gateway| pages.map(|page| gateway.admin_page(page)))
        .chain([fleet.logs(), redis])
        .collect();
    assert!(!secrets.iter().any(|secret| pages.contains(secret)));
}

#[test]
fn one_orders_by_requests_that_any_gateway_answers() {
    let Some(mut fleet) = Fleet::start(2, "http-01", "") else { return };
    let root = fleet.authority_begins();
    fleet.all_serve(&root, "");
    assert_eq!(fleet.pebble.issued(), 1, "{}", fleet.logs());
}

/// The first gateway is killed during a validation, the second after it, and the third continues.
#[test]
fn a_gateway_that_is_killed_while_it_orders_stops_no_other() {
    let Some(mut fleet) = Fleet::start(0, "dns-01", "") else { return };
    let hook = fleet.pebble.dns_hook();
    let of_hook = |ending: &str| PathBuf::from(format!("{}.{ending}", hook.display()));
    for index in 0..3 {
        let text = fs::read_to_string(fleet.file(index)).expect("the configuration");
        let text = text.replace("[dns-01]", &format!("[dns-01], dns_hook: {}", hook.display()));
        fs::write(fleet.file(index), text).expect("writing");
    }
    let root = fleet.authority_begins();
    for step in ["present", "cleanup"] {
        fs::write(of_hook(&format!("block-{step}")), "").expect("writing");
    }
    (0..3).for_each(|_| fleet.join());
    let mut killed = Vec::new();
    for step in ["present", "cleanup"] {
        eventually("one orders", || {
            fs::read_to_string(of_hook("blocked")).is_ok_and(|pid| pid.ends_with('\n'))
                && !of_hook(&format!("block-{step}")).exists()
        });
        let pid = fs::read_to_string(of_hook("blocked")).expect("its process id");
        fs::remove_file(of_hook("blocked")).expect("removing");
        Fleet::signal(&pid, "KILL");
        let index = fleet.gateways.iter().position(|gateway| gateway.pid().to_string() == pid.trim());
        killed.push(index.expect("one of these"));
        println!("{step}: gateway {index:?} was killed");
        fleet.gateways[index.expect("one of these")].wait(PATIENCE).expect("its end");
        end_lease_soon(&fleet.redis);
    }
    let left = (0..3).find(|index| !killed.contains(index)).expect("one is left");
    let served = wait_for_certificate(&fleet.gateways[left], &root, NAME, &[]);
    assert_eq!(fleet.pebble.issued(), 1, "{}", fleet.logs());
    // A gateway that was killed has the certificate at once after its restart.
    let again = Gateway::with_config(&fleet.file(killed[0]), 2);
    let shown = wait_for_certificate(&again, &root, NAME, &[]);
    assert_eq!(leaf(&shown), leaf(&served));
    assert_eq!(fleet.pebble.issued(), 1, "{}", fleet.logs());
}

#[test]
fn without_redis_what_is_there_serves_and_none_is_ordered() {
    let Some(mut fleet) = Fleet::start(2, "tls-alpn-01", "") else { return };
    let root = fleet.authority_begins();
    let (first, _) = fleet.all_serve(&root, "");
    fleet.redis.kill();
    for gateway in &mut fleet.gateways {
        gateway.wait_for_log("the fleet's Redis is unavailable");
        gateway.wait_for_metric("quadrille_acme_fleet_reachable", &[], |value| value == 0.0);
        gateway.wait_for_log("no certificate is ordered until it is available");
    }
    fleet.renew(0);
    fleet.gateways[0].wait_for_log("an operator requests its renewal");
    throughout(Duration::from_secs(3), "the certificate has changed", || {
        fleet.gateways.iter().all(|gateway| {
            shown(gateway.address(0), &root, NAME, &[]).is_ok_and(|still| leaf(&still) == first)
        })
    });
    assert_eq!(fleet.pebble.issued(), 1);
    // Redis restarts empty: the fleet stores its certificates there again, and orders the requested ones.
    fleet.redis.restart();
    let (second, _) = fleet.all_serve(&root, &first);
    eventually("Redis has it again", || {
        !fleet.redis.cli(&["KEYS", "*:record:certificates/*"]).trim().is_empty()
    });
    assert_eq!(fleet.pebble.issued(), 2, "{}", fleet.logs());
    fleet.join();
    let newcomer = wait_for_certificate(&fleet.gateways[2], &root, NAME, &[]);
    assert_eq!((leaf(&newcomer), fleet.pebble.issued()), (&second[..], 2));
}

#[test]
fn a_record_that_was_changed_or_is_an_old_one_is_refused_and_repaired() {
    let Some(mut fleet) = Fleet::start(2, "tls-alpn-01", "") else { return };
    let root = fleet.authority_begins();
    let (first, _) = fleet.all_serve(&root, "");
    let record = fleet.record();
    let read = |fleet: &Fleet| fleet.redis.cli(&["--no-raw", "GET", &record]);
    let refused = |fleet: &Fleet| fleet.metric("quadrille_acme_records_refused_total", &[]);

    let good = read(&fleet);
    fleet.redis.cli(&["COPY", &record, "old"]);
    fleet.redis.cli(&["SETRANGE", &record, "100", "tampered"]);
    assert_ne!(read(&fleet), good);
    eventually("it is refused", || refused(&fleet) >= 1.0);
    eventually("the change is not logged", || {
        fleet.logs().contains("does not belong to this fleet or has been modified")
    });
    eventually("it is repaired", || !read(&fleet).contains("tampered"));

    fleet.renew(0);
    let (second, _) = fleet.all_serve(&root, &first);
    let before = refused(&fleet);
    fleet.redis.cli(&["COPY", "old", &record, "REPLACE"]);
    eventually("the old one is refused", || refused(&fleet) > before);
    eventually("the age is not logged", || fleet.logs().contains("is older than the version this gateway"));
    eventually("it is repaired", || read(&fleet) != good);
    // A gateway that joins now receives the right record, and orders nothing.
    fleet.join();
    let newcomer = wait_for_certificate(&fleet.gateways[2], &root, NAME, &[]);
    assert_eq!((leaf(&newcomer), fleet.pebble.issued()), (&second[..], 2), "{}", fleet.logs());
}

#[test]
fn a_gateway_that_may_orders_alone_while_redis_is_away() {
    let Some(mut fleet) = Fleet::start(0, "tls-alpn-01", ", fleet: preferred") else { return };
    fleet.redis.kill();
    let root = fleet.authority_begins();
    fleet.join();
    let first = wait_for_certificate(&fleet.gateways[0], &root, NAME, &[]);
    fleet.gateways[0].wait_for_log("this gateway orders alone");
    // Its certificate becomes the fleet's.
    fleet.redis.restart();
    eventually("the fleet has it", || {
        !fleet.redis.cli(&["KEYS", "*:record:certificates/*"]).trim().is_empty()
    });
    fleet.join();
    let newcomer = wait_for_certificate(&fleet.gateways[1], &root, NAME, &[]);
    assert_eq!((leaf(&newcomer), fleet.pebble.issued()), (leaf(&first), 1), "{}", fleet.logs());
}

/// A lock in the directory prevents duplicate orders without Redis.
#[test]
fn two_processes_with_one_state_directory_order_once() {
    let Some(mut pebble) = Pebble::prepare() else { return };
    let [_, file] = pebble.configuration_with_hook("{ names: [both.example.com] }", "dns-01");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace(&format!(":{}\n", pebble.tls_port), ":0\n")).expect("writing");
    let behaviour = Behaviour::default();
    pebble.configure(&behaviour);
    pebble.run(&behaviour);
    let gateways = [(); 2].map(|()| Gateway::with_config(&file, 1));
    let root = pebble.root();
    // Either process may order, and only its log contains the error.
    let logs = || {
        let [one, other] = gateways.each_ref().map(Gateway::log);
        format!("one process:\n{one}\nthe other:\n{other}\nthe authority:\n{}", pebble.log())
    };
    let [one, other] = gateways
        .each_ref()
        .map(|gateway| wait_for_certificate_at(gateway.address(0), &root, "both.example.com", &[], logs));
    assert_eq!(leaf(&one), leaf(&other), "{}", logs());
    assert_eq!(pebble.issued(), 1, "{}", logs());
}
