//! Purpose of the module: the handshakes of one worker are computed in batches.

use super::server::{Configuration, Nginx, resident_kib, rsa_site};
use crate::support::{Site, until};
use std::time::Instant;

const CLIENTS: usize = 32;

/// Sends `each` requests from every client, which get their own path back.
pub(super) fn exchanges(nginx: &Nginx, site: &Site, clients: usize, each: usize) {
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let version = ["1.3", "1.2"][client % 2];
                let connections = nginx.client(site, version);
                for number in 0..each {
                    let path = format!("/{client}/{number}");
                    let answer = connections.get(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                    assert_eq!(answer, path);
                }
            });
        }
    });
}

/// Clients on the same machine leave the worker idle at times, even more under other load: the test is repeated until
/// batches were filled.
#[test]
fn clients_of_one_worker_fill_batches() {
    until("operations go one by one", batches_are_filled);
}

fn batches_are_filled() -> bool {
    let began = Instant::now();
    let site = rsa_site();
    let log = format!("access_log {} took;", site.path_text("access.log"));
    // One core for event loop and compute thread: with spare cores, operations are computed immediately, and alone.
    let one_core = "worker_cpu_affinity 1;";
    let configuration = Configuration { main: one_core, server: &log, ..Configuration::default() };
    let nginx = Nginx::start(&site, &configuration);
    let total = CLIENTS * 30;
    exchanges(&nginx, &site, CLIENTS, 30);
    let (mean, handshakes) =
        (nginx.status("quadrille_batch_mean"), nginx.status("quadrille_handshakes_total"));
    let (pauses, wakeups) = (nginx.status("quadrille_pauses_total"), nginx.status("quadrille_wakeups_total"));
    println!("{handshakes} handshakes, {pauses} pauses, {wakeups} wakeups, {mean} in a batch");
    assert!(handshakes >= total as f64 && pauses >= total as f64 / 2.0);
    assert_eq!(nginx.status("quadrille_jobs"), 0.0);
    let access = site.read("access.log");
    let took = |name: &str| {
        let of_line = |line: &str| line.split_once(name)?.1.split(' ').next()?.parse::<f64>().ok();
        access.lines().filter_map(of_line).collect::<Vec<_>>()
    };
    let (batches, waits) = (took("batch="), took("wait="));
    let longest = began.elapsed().as_secs_f64() * 1e6;
    assert!(waits.len() >= total / 2 && waits.iter().all(|us| *us < longest), "{access}");
    nginx.assert_log_is_clean("-");
    // With a load generator on its own core the mean is 4 to 7.
    mean >= 2.0 && batches.iter().any(|size| *size >= 3.0)
}

#[test]
fn key_exchange_of_several_handshakes_goes_together() {
    if !std::arch::is_x86_feature_detected!("avx512ifma") {
        println!(
            "skipped: without AVX-512 IFMA lanes pay from three secrets on, which are too rare to measure"
        );
        return;
    }
    until("key exchanges go one by one", key_exchanges_go_together);
}

fn key_exchanges_go_together() -> bool {
    let site = rsa_site();
    let configuration = Configuration { main: "worker_cpu_affinity 1;", ..Configuration::default() };
    let nginx = Nginx::start(&site, &configuration);
    exchanges(&nginx, &site, CLIENTS, 30);
    let (handshakes, pauses) =
        (nginx.status("quadrille_handshakes_total"), nginx.status("quadrille_pauses_total"));
    println!("{handshakes} handshakes, {pauses} pauses");
    assert_eq!(nginx.status("quadrille_jobs"), 0.0);
    nginx.assert_log_is_clean("-");
    // One pause is for the signature. The other one is skipped for a while after a turn with too few handshakes.
    pauses >= handshakes * 1.1
}

#[test]
fn idle_connections_hold_no_job() {
    let site = rsa_site();
    let nginx = Nginx::start(&site, &Configuration::default());
    let client = nginx.client(&site, "1.2");
    let open: Vec<_> = (0..500).map(|_| client.hold().expect("a handshake")).collect();
    assert_eq!(nginx.status("quadrille_jobs"), 0.0);
    let per_connection = |connections: usize| resident_kib(nginx.workers()[0]) / connections;
    // The memory of nginx's own pools and OpenSSL's object, without the 32 KiB of a job's stack.
    assert!(per_connection(open.len()) < 64, "{} KiB each, in total", per_connection(open.len()));
}

#[test]
fn servers_can_do_without() {
    let site = rsa_site();
    let off = Configuration { server: "quadrille_async off;", ..Configuration::default() };
    let nginx = Nginx::start(&site, &off);
    exchanges(&nginx, &site, 2, 2);
    assert_eq!(nginx.status("quadrille_handshakes_total"), 0.0);
    drop(nginx);
    let off = Configuration { main: "quadrille_async off;", ..Configuration::default() };
    let nginx = Nginx::start(&site, &off);
    exchanges(&nginx, &site, 2, 2);
    assert_eq!(nginx.status("quadrille_handshakes_total"), 0.0);
}

#[test]
fn without_the_provider_it_says_so_and_does_nothing() {
    let site = rsa_site();
    let nginx = Nginx::start_as(&site, site.plain("/usr/sbin/nginx"), &Configuration::default());
    exchanges(&nginx, &site, 4, 2);
    assert_eq!(nginx.status("quadrille_handshakes_total"), 0.0);
    assert!(nginx.running.log().contains("the quadrille provider is not loaded"), "{}", nginx.running.log());
}
