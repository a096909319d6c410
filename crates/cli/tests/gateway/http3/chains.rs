//! Listeners with several filter chains: the ClientHello selects the chain, over UDP as over TCP.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, Pair, configuration::listener_at, document,
    eventually, http3::Http3, output, ports,
};
use std::{net::SocketAddr, process::Command};

const NO_NAME: u64 = 112;
const NO_CERTIFICATE: u64 = 116;
const NO_PROTOCOL: u64 = 120;

struct Chains {
    certificates: Certificates,
    clients: Certificates,
    gateway: Gateway,
    file: Configuration,
    address: SocketAddr,
}

impl Chains {
    /// Starts one address with these chains, each a server name and listener keys. CA is replaced by the clients' CA.
    fn new(chains: &[(&str, &str)]) -> Self {
        let (certificates, clients) = (Certificates::new(), Certificates::new());
        let ca = clients.ca().display().to_string();
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let listeners: Vec<_> = chains
            .iter()
            .map(|(name, keys)| {
                let pair = certificates.rsa(2048, &[name]);
                let keys = keys.replace("CA", &ca);
                listener_at(address, &pair, &format!("match: {{server_names: [{name}]}}, {keys}"))
            })
            .collect();
        let file = Configuration::new(&document(&listeners, "web: {servers: ['127.0.0.1:1']}"));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, clients, gateway, file, address }
    }

    #[track_caller]
    fn connect(&self, client: &mut Http3Client, name: &str) -> Http3 {
        let mut connection = client.begin_for(name, self.address, None);
        connection.run_until(name, Http3::is_established);
        connection
    }

    fn reload(&mut self, change: impl FnOnce(String) -> String) {
        let text = std::fs::read_to_string(self.file.path()).expect("the file");
        self.file.replace(&change(text));
        self.gateway.signal("HUP");
        self.gateway.wait_for_log("configuration reloaded");
    }
}

fn show_certificate(client: &mut Http3Client, pair: &Pair) {
    let config = client.config();
    config.load_cert_chain_from_pem_file(pair.chain.to_str().expect("text")).expect("a chain");
    config.load_priv_key_from_pem_file(pair.key.to_str().expect("text")).expect("a key");
}

#[test]
fn the_name_decides_which_chain_serves() {
    let chains = Chains::new(&[
        ("one.example", "http3: on, respond: one, tls: {groups: [X25519]}, timeouts: {idle: 47s}"),
        ("two.example", "http3: on, respond: two, tls: {groups: [P-256]}, timeouts: {idle: 53s}"),
        ("tcp.example", "respond: tcp"),
        ("bytes.example", "mode: tcp, upstream: web"),
    ]);
    let client = &mut Http3Client::new(&chains.certificates);
    for (name, answer, group, idle) in
        [("one.example", "one", "X25519", 47_000), ("two.example", "two", "P-256", 53_000)]
    {
        let mut connection = chains.connect(client, name);
        assert_eq!(connection.get_of(name, "/").text(), answer);
        let ssl: &mut boring::ssl::SslRef = connection.quic().as_mut();
        assert_eq!(ssl.curve_name(), Some(group), "{name}");
        let parameters = connection.quic().peer_transport_params().expect("parameters");
        assert_eq!(parameters.max_idle_timeout, idle, "{name}");
    }
    for (name, alert) in
        [("tcp.example", NO_PROTOCOL), ("bytes.example", NO_PROTOCOL), ("other.example", NO_NAME)]
    {
        assert_eq!(client.begin_for(name, chains.address, None).alert(), alert, "{name}");
    }
    let failures = |reason: &str| chains.gateway.metric("quadrille_handshake_failures_total", &[reason]);
    eventually("the failures are not counted", || failures("no_chain") == 3.0);
    assert_eq!(chains.gateway.metric("quadrille_quic_handshakes_total", &[]), 2.0);
    for (name, told) in [("one.example", true), ("tcp.example", false)] {
        let resolve = format!("{name}:{}:127.0.0.1", chains.address.port());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--include", "--resolve", &resolve])
            .arg("--cacert")
            .arg(chains.certificates.ca());
        let (good, said) = output(curl.arg(format!("https://{name}:{}/", chains.address.port())));
        assert!(good && said.to_ascii_lowercase().contains("alt-svc: ") == told, "{name}: {said}");
    }
}

/// A ClientHello in two datagrams is handled like one in a single datagram.
#[test]
fn the_name_may_come_in_the_second_datagram() {
    let chains = Chains::new(&[
        ("one.example", "http3: on, respond: one"),
        ("two.example", "http3: on, respond: two"),
    ]);
    let client = &mut Http3Client::with_groups(&chains.certificates, "X25519MLKEM768:X25519");
    for (name, answer) in [("one.example", "one"), ("two.example", "two")] {
        assert_eq!(chains.connect(client, name).get_of(name, "/").text(), answer);
    }
}

#[test]
fn what_is_asked_of_clients_is_the_chains_own() {
    let chains = Chains::new(&[
        ("open.example", "http3: on, respond: open"),
        ("closed.example", "http3: on, respond: closed, tls: {client_auth: {mode: required, ca: CA}}"),
    ]);
    let stranger = &mut Http3Client::new(&chains.certificates);
    let mut open = chains.connect(stranger, "open.example");
    assert_eq!(open.get_of("open.example", "/").text(), "open");
    assert_eq!(open.get_of("closed.example", "/").status, 421, "no certificate was requested");
    let mut closed = stranger.begin_for("closed.example", chains.address, None);
    assert_eq!(closed.alert(), NO_CERTIFICATE);
    let session = open.session();
    let mut resuming = stranger.begin_for("closed.example", chains.address, Some(&session));
    assert_eq!(resuming.alert(), NO_CERTIFICATE, "a session of another chain is not accepted");

    let imposter = &mut Http3Client::new(&chains.certificates);
    show_certificate(imposter, &chains.certificates.ecdsa("P-256", &["client.example"]));
    let mut closed = imposter.begin_for("closed.example", chains.address, None);
    assert!((42..=48).contains(&closed.alert()), "another CA's");

    let known = &mut Http3Client::new(&chains.certificates);
    show_certificate(known, &chains.clients.ecdsa("P-256", &["client.example"]));
    let mut closed = chains.connect(known, "closed.example");
    assert_eq!(closed.get_of("closed.example", "/").text(), "closed");
    let session = closed.session();
    let mut again = known.begin_for("closed.example", chains.address, Some(&session));
    again.run_until("no handshake", Http3::is_established);
    assert!(again.quic().is_resumed());
    assert_eq!(again.get_of("closed.example", "/").text(), "closed");
}

/// Early data depends on the chain: a chain that requests certificates accepts none.
#[test]
fn early_data_is_the_chains_own() {
    let mut chains = Chains::new(&[
        ("open.example", "http3: on, respond: open"),
        ("closed.example", "http3: on, respond: closed, tls: {client_auth: {mode: optional, ca: CA}}"),
    ]);
    chains.reload(|text| text + "resumption: {early_data: on}\n");
    let client = &mut Http3Client::new(&chains.certificates);
    for (name, early) in [("open.example", true), ("closed.example", false)] {
        let session = chains.connect(client, name).session();
        let mut again = client.begin_for(name, chains.address, Some(&session));
        assert_eq!(again.quic().is_in_early_data(), early, "{name}");
        again.run_until(name, Http3::is_established);
        assert!(again.quic().is_resumed());
    }
}

#[test]
fn a_chain_that_loses_it_tells_its_own_clients_only() {
    let mut chains = Chains::new(&[
        ("one.example", "http3: on, respond: one"),
        ("two.example", "http3: on, respond: two"),
    ]);
    let client = &mut Http3Client::new(&chains.certificates);
    let (mut one, mut two) = (chains.connect(client, "one.example"), chains.connect(client, "two.example"));
    // A connection whose handshake ends after the reload receives GOAWAY with its first response only.
    assert_eq!(one.get_of("one.example", "/").text(), "one");
    chains.reload(|text| text.replace("http3: on, respond: one", "respond: one"));
    one.run_until("it receives no GOAWAY", |one| one.told_to_go);
    assert_eq!(client.begin_for("one.example", chains.address, None).alert(), NO_PROTOCOL);
    assert_eq!(two.get_of("two.example", "/").text(), "two");
    assert!(!two.told_to_go);
    chains.reload(|text| text.replace("respond: one", "http3: on, respond: one"));
    eventually("it has not been restored", || {
        let mut one = client.begin_for("one.example", chains.address, None);
        while !one.is_established() && one.quic().peer_error().is_none() {
            one.turn();
        }
        one.is_established() && one.get_of("one.example", "/").text() == "one"
    });
}
