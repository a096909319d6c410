//! Clients that connect, disconnect at any point and stop sending, while nginx is reloaded and its workers are
//! killed: in the end all their resources are released.

use super::{
    client::Client,
    server::{Configuration, Nginx, descriptors, kill, resident_kib, rsa_site},
};
use crate::support::{Site, free_port, until};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const CLIENTS: usize = 24;

/// More than the bytes of a handshake, with an RSA-2048 certificate.
const BYTES: usize = 4_500;

/// Maximum memory growth of a worker, in KiB: pools at their largest, and what malloc keeps.
const GROWTH: usize = 24 * 1024;

/// Results seen by clients.
#[derive(Debug, Default)]
struct Seen {
    begun: AtomicUsize,
    answered: AtomicUsize,
    failed: AtomicUsize,
    silent: AtomicUsize,
}

/// xorshift64* generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("31 bits") % limit
    }
}

fn one_client(site: &Site, ports: [u16; 2], quiet: u16, number: usize, total: usize, seen: &Seen) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1));
    let clients: Vec<Client> = ports
        .into_iter()
        .flat_map(|port| ["1.2", "1.3"].map(|version| Client::new(site, "served", port, version)))
        .collect();
    let silent = ["1.2", "1.3"].map(|version| Client::new(site, "served", quiet, version));
    while seen.begun.fetch_add(1, Ordering::Relaxed) < total {
        let client = &clients[random.below(clients.len())];
        match random.below(100) {
            0..50 => {
                let path = format!("/{number}/{}", random.below(1 << 30));
                match client.get(&path) {
                    Ok(answer) => {
                        assert_eq!(answer, path, "a wrong response");
                        seen.answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => _ = seen.failed.fetch_add(1, Ordering::Relaxed),
                }
            }
            50..80 => _ = client.leave_after(random.below(BYTES), random.below(2) == 0),
            80..99 => _ = client.leave_with_request(Duration::from_micros(random.below(3_000) as u64)),
            _ => {
                let _ = silent[random.below(silent.len())].fall_silent(random.below(BYTES));
                seen.silent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reloads nginx and kills workers, `each` handshakes apart.
fn disturb(nginx: &Nginx, total: usize, each: usize, seen: &Seen) -> usize {
    let (mut kills, mut next) = (0, each);
    while seen.begun.load(Ordering::Relaxed) < total {
        if seen.begun.load(Ordering::Relaxed) >= next {
            next += each;
            if (next / each).is_multiple_of(2) {
                nginx.running.signal(libc::SIGHUP);
            } else if let Some(worker) = nginx.workers().first() {
                kill(*worker, libc::SIGKILL);
                kills += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    kills
}

fn soak(total: usize, log_level: &str, disturbed: bool) {
    let site = rsa_site();
    site.certificate("client", "rsa:2048");
    let [front, behind, quiet] = [(); 3].map(|()| free_port());
    let folder = site.path_text("");
    let http = format!(
        "client_header_timeout 300s;\n\
         server {{ listen 127.0.0.1:{quiet} ssl; client_header_timeout 3s; }}\n\
         server {{ listen 127.0.0.1:{behind} ssl; ssl_verify_client on; ssl_client_certificate {folder}client.pem;\n\
         location / {{ return 200 $request_uri; }} }}\n\
         server {{ listen 127.0.0.1:{front} ssl; location / {{ proxy_pass https://127.0.0.1:{behind};\n\
         proxy_ssl_session_reuse off;\n\
         proxy_ssl_certificate {folder}client.pem; proxy_ssl_certificate_key {folder}client.key; }} }}\n"
    );
    let nginx = Nginx::start(&site, &Configuration { http: &http, log_level, ..Configuration::default() });
    let seen = Seen::default();
    let run = |total: usize| {
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (site, seen) = (&site, &seen);
                scope.spawn(move || one_client(site, [nginx.port, front], quiet, number, total, seen));
            }
            if disturbed { disturb(&nginx, total, (total / 9).max(200), &seen) } else { 0 }
        })
    };
    let alone = || {
        until("one worker is left", || nginx.workers().len() == 1);
        until("no job is left", || nginx.status("quadrille_jobs") == 0.0);
        nginx.workers()[0]
    };
    // Runs until pools and caches have reached their maximum size.
    let mut kills = run(total / 5);
    let before = resident_kib(alone());
    kills += run(total);
    let worker = alone();
    let client = nginx.client(&site, "1.3");
    assert_eq!(client.get("/after").expect("a response"), "/after");
    let abandoned = nginx.status("quadrille_abandoned_total");
    println!("{seen:?}, {abandoned} abandoned, {kills} workers killed");
    println!("memory of a worker: {before} KiB, and after that {} KiB", resident_kib(worker));
    // A killed worker drops its connections.
    let most_failed = kills * 2 * CLIENTS + seen.answered.load(Ordering::Relaxed) / 500;
    assert!(seen.failed.load(Ordering::Relaxed) <= most_failed, "{seen:?}");
    assert!(resident_kib(worker) < before + GROWTH);
    let served = descriptors(worker);
    // A new worker has only the descriptors it needs.
    nginx.running.signal(libc::SIGHUP);
    until("a new worker", || nginx.workers().len() == 1 && nginx.workers()[0] != worker);
    assert_eq!(client.get("/new").expect("a response"), "/new");
    until("its descriptors", || descriptors(nginx.workers()[0]) == served);
    nginx.assert_log_is_clean("exited on signal 9");
}

#[test]
fn nothing_is_left_of_clients_that_leave() {
    soak(1_500, "debug", false);
}

#[test]
fn nothing_is_left_after_reloads_and_kills() {
    soak(2_500, "info", true);
}

/// Runs for some minutes: `make soak-nginx`.
#[test]
#[ignore = "takes some minutes: make soak-nginx"]
fn a_hundred_thousand() {
    soak(100_000, "info", false);
    soak(100_000, "info", true);
}
