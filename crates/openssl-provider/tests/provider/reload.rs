//! HAProxy in master-worker mode reloads its configuration under load.

use crate::{
    servers::haproxy_configuration,
    support::{Running, Site, free_port, handshake, until},
};
use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

const CLIENTS: usize = 3;
const RELOADS: usize = 4;
/// Number of polls after which the signal is sent again: a master that has just started may miss it.
const LOOKS: usize = 200;

/// Results seen by clients, from before the first reload until after the last.
#[derive(Debug)]
struct Seen {
    handshakes: usize,
    failed: usize,
}

/// Stops the clients when dropped, however the test ends.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the names of a process's threads.
fn threads(pid: u32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Reloads HAProxy several times under load. Each time a new worker starts, and the previous one ends.
fn reloaded(site: &Site, mut haproxy: Command) -> Seen {
    let port = free_port();
    let file = haproxy_configuration(site, port);
    let running = Running::start(site, "haproxy", haproxy.arg("-W").arg("-f").arg(file));
    until("HAProxy serves", || handshake(site, port, "").is_some());
    let (handshakes, failed, over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _clients = Until(&over);
        for client in 0..CLIENTS {
            let (handshakes, failed, over) = (&handshakes, &failed, &over);
            let version = ["-tls1_3", "-tls1_2"][client % 2];
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    handshakes.fetch_add(1, Ordering::Relaxed);
                    let succeeded = handshake(site, port, version).is_some();
                    failed.fetch_add(usize::from(!succeeded), Ordering::Relaxed);
                }
            });
        }
        for _ in 0..RELOADS {
            let before = running.family().split_off(1);
            let seen = handshakes.load(Ordering::Relaxed);
            let mut looks = 0_usize;
            until("another worker is alone", || {
                if looks.is_multiple_of(LOOKS) {
                    running.signal(libc::SIGUSR2);
                }
                looks += 1;
                let now = running.family().split_off(1);
                now.len() == 1 && !before.contains(&now[0])
            });
            until("it serves", || handshakes.load(Ordering::Relaxed) > seen + 2 * CLIENTS);
        }
    });
    let [master, worker] = running.family()[..] else { panic!("{:?}", running.family()) };
    println!("master {:?}, worker {:?}", threads(master), threads(worker));
    assert!(!threads(master).iter().any(|name| ours(name)), "the master has our threads");
    assert_eq!(
        threads(worker).iter().any(|name| ours(name)),
        haproxy.get_envs().any(|(name, value)| name == "OPENSSL_CONF" && value.is_some()),
        "the worker computes in the provider exactly if it is loaded"
    );
    Seen { handshakes: handshakes.into_inner(), failed: failed.into_inner() }
}

/// Returns whether a thread of this name is the provider's.
fn ours(name: &str) -> bool {
    name.starts_with("compute-") || name.starts_with("quadrille-")
}

#[test]
fn haproxy_reloads_under_load() {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    let _server = site.key_server("keys", &["rsa"]);
    site.stand_in("remote.key", &["keys"], "rsa", &[]);
    fs::copy(site.path("rsa.both"), site.path("served.both")).expect("it is there");
    let plain = reloaded(&site, site.plain("/usr/sbin/haproxy"));
    let here = reloaded(&site, site.with_provider("/usr/sbin/haproxy"));
    site.write("served.both", &[site.read("rsa.pem"), site.read("remote.key")].concat());
    let in_key_server = reloaded(&site, site.with_provider("/usr/sbin/haproxy"));
    println!("{RELOADS} reloads: alone {plain:?}, keys here {here:?}, in a key server {in_key_server:?}");
    assert!([&plain, &here, &in_key_server].iter().all(|seen| seen.handshakes > RELOADS * CLIENTS));
    assert!(here.failed <= plain.failed, "{here:?}, and alone {plain:?}");
    assert!(in_key_server.failed <= plain.failed, "{in_key_server:?}, and alone {plain:?}");
}
