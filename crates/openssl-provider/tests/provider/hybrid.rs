//! X25519MLKEM768 of the provider: BoringSSL's clients with real servers whose OpenSSL (3.0) lacks it, and OpenSSL's
//! client with a BoringSSL server.

use crate::{
    nginx_async::{Client, Configuration, Nginx, rsa_site},
    servers::haproxy_configuration,
    support::{Running, Site, free_port, listens, until},
};
use boring::ssl::{
    ErrorCode, SslAcceptor, SslConnector, SslFiletype, SslMethod, SslStreamBuilder, SslVersion,
};
use std::{
    fs,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
};

const HYBRID: u16 = 0x11ec;
const X25519: u16 = 0x001d;
const P_256: u16 = 0x0017;

/// Value of nginx's `ssl_ecdh_curve`.
const GROUPS: &str = "ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1;";

/// Tests every group that a client may require, with several clients at once.
fn every_group(client: &(impl Fn() -> Client + Sync)) {
    std::thread::scope(|scope| {
        for number in 0..32 {
            let (groups, agreed) = match number % 8 {
                0 => ("X25519", X25519),
                1 => ("P-256", P_256),
                // Only the first comes with a share, and the server does not request another group.
                2 => ("X25519:X25519MLKEM768", X25519),
                _ => ("X25519MLKEM768", HYBRID),
            };
            scope.spawn(move || {
                let client = client().with_groups(groups);
                for _ in 0..10 {
                    assert_eq!(client.agreed_group().expect("a handshake"), Some(agreed), "{groups}");
                }
            });
        }
    });
}

#[test]
fn nginx_agrees_upon_it_with_the_module_and_without() {
    let site = rsa_site();
    for main in ["worker_cpu_affinity 1;", "quadrille_async off;"] {
        let nginx = Nginx::start(&site, &Configuration { main, server: GROUPS, ..Configuration::default() });
        every_group(&|| nginx.client(&site, "1.3"));
        let (handshakes, pauses) =
            (nginx.status("quadrille_handshakes_total"), nginx.status("quadrille_pauses_total"));
        println!("{main} {handshakes} handshakes, {pauses} pauses");
        assert_eq!(handshakes > 0.0, !main.contains("off"));
        if pauses > 0.0 && std::arch::is_x86_feature_detected!("avx512ifma") {
            assert!(pauses >= handshakes * 1.1, "no handshake has waited for the key exchange of others");
        }
        nginx.assert_log_is_clean("-");
        rejects_invalid_shares(&site, nginx.port);
        every_group(&|| nginx.client(&site, "1.3"));
    }
}

#[test]
fn haproxy_agrees_upon_it_in_its_jobs() {
    let site = rsa_site();
    let port = free_port();
    let file = haproxy_configuration(&site, port);
    let text = fs::read_to_string(&file).expect("a configuration");
    let with_groups = text.replace(" ssl crt ", " ssl curves X25519MLKEM768:X25519:P-256 crt ");
    assert_ne!(text, with_groups, "the certificate's line");
    fs::write(&file, with_groups).expect("a configuration");
    let mut haproxy = site.with_provider("/usr/sbin/haproxy");
    let mut running = Running::start(&site, "haproxy", haproxy.arg("-db").arg("-f").arg(file));
    until("HAProxy listens", || listens(port) || !running.is_alive());
    assert!(running.is_alive(), "{}", running.log());
    every_group(&|| Client::new(&site, "served", port, "1.3"));
    rejects_invalid_shares(&site, port);
    every_group(&|| Client::new(&site, "served", port, "1.3"));
}

#[test]
fn node_agrees_upon_it() {
    let site = rsa_site();
    let port = free_port();
    let script = "const fs = require('fs'), [, , cert, key, port] = process.argv;\
        require('https').createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key),\
        ecdhCurve: 'X25519MLKEM768:X25519:P-256' }, (_, response) => response.end('ok')).listen(+port, '127.0.0.1');";
    let mut node = site.plain("node");
    node.env("OPENSSL_CONF", site.path("node.cnf")).arg(site.write("server.js", script));
    node.args([site.path("served.pem"), site.path("served.key")]).arg(port.to_string());
    let mut running = Running::start(&site, "node", &mut node);
    until("Node listens", || listens(port) || !running.is_alive());
    assert!(running.is_alive(), "{}", running.log());
    every_group(&|| Client::new(&site, "served", port, "1.3"));
    rejects_invalid_shares(&site, port);
}

/// Sends a coefficient that is not reduced, and a point of small order. The server sends an alert, and continues to
/// serve.
fn rejects_invalid_shares(site: &Site, port: u16) {
    const ILLEGAL_PARAMETER: u8 = 47;
    const INTERNAL_ERROR: u8 = 80;
    let unreduced = alert(port, &hello_with(site, |share| share[..3].fill(0xff)));
    assert_eq!(unreduced, Some(ILLEGAL_PARAMETER));
    // The same alert as OpenSSL's own if no secret can be derived.
    let small_order = alert(port, &hello_with(site, |share| share[1184..].fill(0)));
    assert!(matches!(small_order, Some(ILLEGAL_PARAMETER | INTERNAL_ERROR)), "{small_order:?}");
    assert_eq!(alert(port, &hello_with(site, |_| ())), None, "a ServerHello");
}

/// Returns a ClientHello with a modified share.
fn hello_with(site: &Site, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a context");
    builder.set_ca_file(site.path("served.pem")).expect("a certificate");
    let mut ssl = builder.build().configure().expect("a client").into_ssl("localhost").expect("a client");
    ssl.set_curves_list("X25519MLKEM768").expect("a group");
    let mut sent = Sent(Vec::new());
    assert!(SslStreamBuilder::new(ssl, &mut sent).connect().is_err(), "there is no response");
    let mut hello = sent.0;
    let entry = [HYBRID.to_be_bytes(), 1216_u16.to_be_bytes()].concat();
    let at = hello.windows(4).position(|window| window == entry).expect("a share") + 4;
    change(&mut hello[at..at + 1216]);
    hello
}

/// Returns the alert sent in response to a first flight, if any.
fn alert(port: u16, hello: &[u8]) -> Option<u8> {
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    tcp.write_all(hello).expect("a ClientHello");
    let mut record = [0; 7];
    tcp.read_exact(&mut record).expect("a response");
    (record[0] == 21).then_some(record[6])
}

/// Records what is sent, and sends nothing.
struct Sent(Vec<u8>);

impl Read for Sent {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks the secret: because of implicit rejection, a wrong one ends in a failed handshake.
#[test]
fn a_client_of_openssl_agrees_upon_it_with_boringssl() {
    let site = rsa_site();
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).expect("a context");
    builder.set_private_key_file(site.path("served.key"), SslFiletype::PEM).expect("a key");
    builder.set_certificate_chain_file(site.path("served.pem")).expect("a certificate");
    builder.set_min_proto_version(Some(SslVersion::TLS1_3)).expect("a version");
    builder.set_curves_list("X25519MLKEM768").expect("a group");
    let acceptor = builder.build();
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    for round in 0..10 {
        let mut client = site.with_provider("timeout");
        client.args(["300", "openssl", "s_client", "-groups", "X25519MLKEM768", "-brief"]);
        client.args(["-connect", &format!("127.0.0.1:{port}")]).stdin(std::process::Stdio::null());
        let child = client.stderr(std::process::Stdio::piped()).spawn().expect("openssl");
        let (tcp, _) = socket.accept().expect("a client");
        let mut tls = acceptor.accept(tcp).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(tls.ssl().curve(), Some(HYBRID));
        // Reads the data after the client's Finished, encrypted with the exchanged keys: it closes.
        let left = tls.ssl_read(&mut [0; 16]).expect_err("the client sends no data");
        assert_eq!(left.code(), ErrorCode::ZERO_RETURN, "{left}");
        drop(tls);
        let said = child.wait_with_output().expect("openssl's end");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}
