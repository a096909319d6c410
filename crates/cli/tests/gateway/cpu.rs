//! CPU time by handshake message in the running gateway: the handshakes measured, their names, and that waiting is
//! not counted.

use crate::support::{
    Certificates, Configuration, Gateway, Pair, configuration, quadrille, s_client, succeed,
};
use std::{fs, num::NonZeroU32, time::Instant};

const CPU: &str = "quadrille_handshake_cpu_nanoseconds_total";
const SAMPLES: &str = "quadrille_handshake_samples_total";

/// Starts a gateway on one event loop, with these further keys at the top of its file.
fn gateway(pair: &Pair, keys: &str) -> Gateway {
    let listener = configuration::listener(pair, "respond: ok");
    let text = configuration::document(&[listener], "").replace("threads: 2", &format!("threads: 1\n{keys}"));
    Gateway::with_config(&Configuration::new(&text).path(), 1)
}

/// Performs this many handshakes, one of them to verify the certificate.
fn bench(gateway: &Gateway, certificates: &Certificates, count: NonZeroU32, arguments: &[&str]) {
    let mut bench = quadrille("bench");
    bench.arg(format!("https://localhost:{}/", gateway.port())).arg("--ca").arg(certificates.ca());
    bench.args(["--connect", &format!("127.0.0.1:{}", gateway.port())]);
    bench.args(["--count", &(count.get() - 1).to_string(), "--connections", "4"]).args(arguments);
    succeed(&mut bench);
}

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("more than none")
}

#[test]
fn one_in_so_many_is_measured() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let measured = gateway(&pair, "sampling: {one_in: 4, per_second: 10000}");
    bench(&measured, &certificates, count(40), &[]);
    assert_eq!(measured.metric(SAMPLES, &["full", "sni=\"localhost\""]), 10.0, "{}", measured.metrics());
    let bounded = gateway(&pair, "sampling: {one_in: 1, per_second: 1}");
    let began = Instant::now();
    bench(&bounded, &certificates, count(40), &[]);
    let seconds = began.elapsed().as_secs_f64();
    let samples = bounded.metric(SAMPLES, &[]);
    assert!((1.0..=1.0 + seconds).contains(&samples), "at most one a second: {samples} in {seconds} s");
    let off = gateway(&pair, "sampling: off");
    bench(&off, &certificates, count(10), &[]);
    assert_eq!((off.metric(SAMPLES, &[]), off.metric(CPU, &[])), (0.0, 0.0));
}

#[test]
fn names_are_those_of_the_configuration() {
    let certificates = Certificates::new();
    let gateway =
        gateway(&certificates.ecdsa("P-256", &["localhost", "*.example.com"]), "sampling: {one_in: 1}");
    let shake = |arguments: &[&str]| {
        s_client(gateway.address(0), &certificates.ca(), arguments).expect("a handshake");
    };
    shake(&["-servername", "LocalHost"]);
    shake(&["-servername", "shop.example.com"]);
    (0..3).for_each(|name| shake(&["-servername", &format!("made-up-{name}.example")]));
    shake(&["-noservername"]);
    for (name, samples) in [("localhost", 1.0), ("*.example.com", 1.0), ("other", 3.0), ("none", 1.0)] {
        assert_eq!(gateway.metric(SAMPLES, &[&format!("sni=\"{name}\"")]), samples, "{}", gateway.metrics());
    }
    assert!(!gateway.metrics().contains("made-up"), "{}", gateway.metrics());
}

#[test]
fn stages_are_those_of_the_version_and_the_session() {
    let certificates = Certificates::new();
    for pair in [certificates.rsa(2048, &["localhost"]), certificates.ecdsa("P-256", &["localhost"])] {
        let gateway = gateway(&pair, "sampling: {one_in: 1}");
        for (version, signed) in [("1.2", "ServerKeyExchange"), ("1.3", "CertificateVerify")] {
            bench(&gateway, &certificates, count(20), &["--tls", version, "--resumed", "0.5"]);
            let time = |stage: &str, session: &str| {
                let version = format!("version=\"TLSv{version}\"");
                gateway.metric(
                    CPU,
                    &[&format!("stage=\"{stage}\""), &version, &format!("session=\"{session}\"")],
                )
            };
            for stage in ["ClientHello", "ServerHello", "Certificate", signed, "PrivateKey", "Finished"] {
                assert!(time(stage, "full") > 0.0, "{version} {stage}: {}", gateway.metrics());
            }
            assert!(time("ClientHello", "resumed") > 0.0, "{version}: {}", gateway.metrics());
            for stage in ["PrivateKey", "Certificate", "CertificateVerify"] {
                assert_eq!(time(stage, "resumed"), 0.0, "{version} {stage}: {}", gateway.metrics());
            }
        }
    }
}

#[test]
fn waiting_for_the_private_key_is_not_counted() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let gateway = gateway(&pair, "sampling: {one_in: 1}\nengine: {poll_delay: 300ms}");
    let before = cpu_nanoseconds(&gateway);
    s_client(gateway.address(0), &certificates.ca(), &[]).expect("a handshake");
    let took = gateway.metric("quadrille_handshake_seconds_sum", &[]);
    assert!(took >= 0.3, "{took} s: it has not waited");
    let key = gateway.metric(CPU, &["stage=\"PrivateKey\""]);
    let all = gateway.metric(CPU, &[]);
    assert!(key > 50_000.0, "{key} ns for an RSA operation");
    let used = cpu_nanoseconds(&gateway) - before;
    assert!(all <= used, "{all} ns counted of {used} ns used in {took} s");
}

/// Nothing is counted twice, and little is missed: the CPU time of the process is the bound.
#[test]
fn the_sum_agrees_with_the_processs_cpu() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let gateway = gateway(&pair, "sampling: {one_in: 1, per_second: 100000}");
    let before = cpu_nanoseconds(&gateway);
    bench(&gateway, &certificates, count(400), &["--requests", "0", "--resumed", "0"]);
    let used = cpu_nanoseconds(&gateway) - before;
    let counted = gateway.metric(CPU, &[]);
    assert_eq!(gateway.metric(SAMPLES, &["full"]), 400.0);
    assert!(counted < used * 1.02 && counted > used * 0.4, "{counted} ns counted of {used} ns used");
}

/// CPU time of the process and its threads, from the kernel's accounting (proc(5)).
pub(super) fn cpu_nanoseconds(gateway: &Gateway) -> f64 {
    let threads = fs::read_dir(format!("/proc/{}/task", gateway.pid())).expect("threads");
    let of_thread = |thread: fs::DirEntry| {
        let statistics = fs::read_to_string(thread.path().join("schedstat")).expect("schedstat");
        statistics.split(' ').next().and_then(|time| time.parse::<f64>().ok()).expect("a time")
    };
    threads.map_while(Result::ok).map(of_thread).sum()
}
