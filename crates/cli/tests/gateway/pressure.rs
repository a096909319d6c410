//! Overload with private-key operations: batches grow, disconnected clients free their queue places, a full queue
//! sheds load.

use crate::support::{
    Certificates, Configuration, Gateway, PATIENCE, client_hello, curl, document, eventually, listener,
    tls_client,
};
use boring::ssl::{Ssl, SslSessionCacheMode};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    thread,
};

#[test]
fn clients_that_leave_free_their_place_in_the_queue() {
    const STAYING: usize = 50;
    const LEAVING: usize = 200;
    let certificates = Certificates::new();
    let keys = "respond: ok, timeouts: {handshake: 600s, handshake_deadline: off}";
    let listener = listener(&certificates.rsa(4096, &["localhost"]), keys);
    let configuration = Configuration::new(&format!("engine: {{threads: 1}}\n{}", document(&[listener], "")));
    let gateway = Gateway::with_config(&configuration.path(), 1);
    let hello = client_hello(&tls_client(|_| ()));
    let begin = || {
        let mut client = TcpStream::connect(gateway.address(0)).expect("a connection");
        client.write_all(&hello).expect("a hello");
        client
    };
    let metric = |name: &str, labels: &[&str]| gateway.metric(name, labels) as usize;
    let withdrawn = || metric("quadrille_key_withdrawn_total", &["rsa4096"]);
    let mut begun = 0;
    // On a busy machine, the compute thread may complete some before their disconnection is detected.
    eventually("few places become free", || {
        // The remaining clients keep the compute thread busy, so that the others wait.
        let staying: Vec<_> = (0..STAYING).map(|_| begin()).collect();
        (0..LEAVING).for_each(|_| drop(begin()));
        begun += STAYING + LEAVING;
        gateway.wait_for_metric("quadrille_connections_total", &[], |count| count as usize == begun);
        gateway.wait_for_metric("quadrille_key_queue_depth", &["rsa4096"], |depth| depth == 0.0);
        drop(staying);
        gateway.wait_for_metric("quadrille_connections", &[], |open| open == 0.0);
        let done = metric("quadrille_key_operations_total", &["rsa4096"]);
        assert_eq!(withdrawn() + done, begun, "each is either withdrawn or computed: {}", gateway.metrics());
        withdrawn() >= LEAVING / 2
    });
    let withdrawn = withdrawn() as f64;
    gateway
        .wait_for_metric("quadrille_handshake_failures_total", &["\"closed\""], |count| count >= withdrawn);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
}

#[test]
fn a_full_queue_sheds_and_the_rest_is_served() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(4096, &["localhost"]);
    let file = certificates.path("quadrille.yaml");
    let content = format!(
        "admin: 127.0.0.1:0\nengine: {{queue: 4, threads: 1}}\nlisteners:\n  - address: 127.0.0.1:0\n    respond: ok\n    timeouts: {{handshake: 600s, handshake_deadline: off}}\n    certificates: [{{chain: {}, key: {}}}]\n",
        pair.chain.display(),
        pair.key.display()
    );
    std::fs::write(&file, content).expect("a configuration");
    let gateway = Gateway::with_config(&file, 1);
    let hello = client_hello(&tls_client(|_| ()));
    let begin = || {
        let mut client = TcpStream::connect(gateway.address(0)).expect("a connection");
        client.write_all(&hello).expect("a hello");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        client
    };
    let shed = || gateway.metric("quadrille_key_shed_total", &["rsa4096"]);
    // A handshake record, or the end of the connection.
    let (mut served, mut refused) = (0, 0);
    // On a busy machine, clients may connect one by one, so that the queue is never full.
    eventually("the queue is never full", || {
        let clients: Vec<_> = (0..100).map(|_| begin()).collect();
        for mut client in clients {
            let mut first = [0];
            match client.read(&mut first) {
                Ok(1) if first == [22] => served += 1,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("neither served nor rejected: {error}")
                }
                _ => refused += 1,
            }
        }
        shed() > 0.0
    });
    let shed = shed();
    assert!(served > 0, "{served} served, {refused} refused\n{}", gateway.metrics());
    gateway.wait_for_metric("quadrille_handshake_failures_total", &["\"shed\""], |count| count == shed);
    let computed = gateway.metric("quadrille_key_operations_total", &["rsa4096"]);
    assert_eq!(computed + shed, f64::from(served + refused), "{}", gateway.metrics());
    gateway.wait_for_metric("quadrille_key_queue_depth", &["rsa4096"], |depth| depth == 0.0);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
}

#[test]
fn thirty_two_clients_fill_batches() {
    const CLIENTS: usize = 32;
    const EACH: usize = 25;
    let certificates = Certificates::new();
    let flags = ["--respond", "ok", "--session-tickets", "off", "--session-cache", "off", "--threads", "1"];
    let gateway = Gateway::with_flags(
        &certificates.rsa(2048, &["localhost"]),
        &[&flags[..], &["--compute-threads", "1"]].concat(),
    );
    let context = tls_client(|builder| {
        builder.set_session_cache_mode(SslSessionCacheMode::OFF);
        builder.set_curves_list("X25519").expect("a group");
    });
    let batches = || gateway.metric("quadrille_key_batch_size_count", &["rsa2048"]);
    let operations = || gateway.metric("quadrille_key_batch_size_sum", &["rsa2048"]);
    let mut total = 0.0;
    // On a busy machine, clients may connect more slowly than the compute thread computes.
    eventually("batches stay small", || {
        let (batches_before, operations_before) = (batches(), operations());
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
                        Ssl::new(&context).expect("a session").connect(tcp).expect("a handshake");
                    }
                });
            }
        });
        total += (CLIENTS * EACH) as f64;
        let full = ["rsa2048", "full"];
        gateway.wait_for_metric("quadrille_handshakes_total", &full, |count| count == total);
        assert_eq!(operations(), total, "{}", gateway.metrics());
        (operations() - operations_before) / (batches() - batches_before) >= 3.0
    });
}
