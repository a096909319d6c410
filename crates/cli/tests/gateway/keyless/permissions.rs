//! Permissions that end: of clients whose CA is removed, whose certificate is revoked or expires, and of clients over
//! the keys of others.

use super::operations::{block_on, client_as};
use crate::support::{
    Certificates, Gateway, KeyServer, PATIENCE, Pair, Site, configuration::replace, eventually, output,
    ports, quadrille, refused,
};
use boring::{
    asn1::Asn1Time,
    hash::MessageDigest,
    nid::Nid,
    pkey::PKey,
    ssl::{SslConnector, SslFiletype, SslMethod, SslStream},
    x509::{X509, X509Name},
};
use quadrille_engine::KeyType;
use quadrille_keyless::{
    client::{KeyChangeError, Protocol, Refusal},
    wire::{ErrorCode, Incoming, Message, Mode, Reader, Writer},
};
use std::{
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
};

/// A key server with its own file of client CAs, and further flags.
struct Server {
    site: Site,
    cas: PathBuf,
    server: KeyServer,
}

/// Connects as a client, and returns once the server serves it.
fn connect(server: &Server, pair: &Pair) -> SslStream<TcpStream> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
    builder.set_ca_file(server.site.certificates.ca()).expect("the CA");
    builder.set_certificate_chain_file(&pair.chain).expect("a certificate");
    builder.set_private_key_file(&pair.key, SslFiletype::PEM).expect("a key");
    builder.set_alpn_protos(b"\x10quadrille-keys/1").expect("a protocol");
    let tcp = TcpStream::connect(("127.0.0.1", server.server.port)).expect("a connection");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut tls = builder.build().connect("localhost", tcp).expect("a handshake");
    assert!(is_served(&mut tls), "a new connection");
    tls
}

/// Returns whether the server responds to a ping.
fn is_served(tls: &mut SslStream<TcpStream>) -> bool {
    let mut ping = Writer::new(Mode::Batched);
    assert!(ping.put(&Message::Ping { id: 7, data: b"there?" }));
    if tls.write_all(ping.unsent()).is_err() {
        return false;
    }
    let (mut reader, mut buffer) = (Reader::new(Mode::Batched), [0; 1024]);
    loop {
        if let Some(incoming) = reader.next_message().expect("the protocol") {
            return matches!(incoming, Incoming::Message(Message::Pong { id: 7, .. }));
        }
        match tls.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => reader.receive(&buffer[..count]),
        }
    }
}

/// Waits until the server closes the connection, to which the client sends nothing.
#[track_caller]
fn expect_closed(mut idle: SslStream<TcpStream>) {
    match idle.read(&mut [0; 64]) {
        Ok(count) => assert_eq!(count, 0, "a message"),
        Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it stays open"),
    }
}

impl Server {
    fn start(site: Site, cas: &[&Path], flags: &[&str]) -> Self {
        let file = site.certificates.path("client-cas.pem");
        let server = site.certificates.ecdsa("P-256", &["localhost"]);
        std::fs::write(&file, read_all(cas)).expect("writing");
        let port = ports::free();
        let mut command = quadrille("keyserver");
        command.arg("--keys").arg(site.keys()).arg("--client-ca").arg(&file);
        command.arg("--cert").arg(&server.chain).arg("--key").arg(&server.key);
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"]).args(flags);
        let process = Gateway::start(command, 1);
        Self { site, cas: file, server: KeyServer { process, port } }
    }

    fn ping(&self, pair: &Pair) -> bool {
        let mut command = quadrille("keyserver");
        command.args(["ping", "--server", &self.server.name(), "--ca"]).arg(self.site.certificates.ca());
        output(command.arg("--cert").arg(&pair.chain).arg("--key").arg(&pair.key)).0
    }
}

fn read_all(files: &[&Path]) -> Vec<u8> {
    files.iter().flat_map(|file| std::fs::read(file).expect("reading")).collect()
}

#[test]
fn clients_of_a_removed_ca_are_disconnected() {
    let (site, other) = (Site::new(), Certificates::new());
    let pair = other.ecdsa("P-256", &["other.example"]);
    let own = site.certificates.ca();
    let mut server = Server::start(site, &[&own, &other.ca()], &[]);
    let idle = connect(&server, &pair);
    let mut kept = connect(&server, &server.site.gateway.clone());
    // A reload that changes nothing ends no connection.
    server.server.process.signal("HUP");
    server.server.process.wait_for_log("read again");
    assert!(is_served(&mut kept));
    replace(&server.cas, &read_all(&[&own]));
    expect_closed(idle);
    server.server.process.wait_for_log("no longer accepted");
    assert!(is_served(&mut kept), "the other CA is still trusted");
    assert!(!server.ping(&pair) && server.ping(&server.site.gateway));
}

#[test]
fn revoked_clients_are_disconnected() {
    let site = Site::new();
    let own = site.certificates.ca();
    let revoked = site.certificates.ecdsa("P-256", &["revoked.example"]);
    let list = site.certificates.path("clients.crl");
    site.certificates.revoke(&[], &list);
    let server = Server::start(site, &[&own], &["--client-crl", list.to_str().expect("UTF-8")]);
    let idle = connect(&server, &revoked);
    let mut kept = connect(&server, &server.site.gateway.clone());
    server.site.certificates.revoke(&[&revoked], &list);
    expect_closed(idle);
    assert!(is_served(&mut kept));
    assert!(!server.ping(&revoked) && server.ping(&server.site.gateway));
    // A damaged list is an error, wherever it is damaged, and the lists before it stay in service.
    let whole = read_all(&[&list, &list]);
    let mut process = server.server.process;
    replace(&list, &whole[..whole.len() - 40]);
    process.wait_for_log("is damaged: line");
    let mut command = server.site.command();
    command.args(["--listen", "127.0.0.1:0", "--admin", "off", "--client-crl"]).arg(&list);
    let said = refused(&mut command);
    assert!(said.contains("clients.crl") && said.contains("line"), "{said}");
}

#[test]
fn a_connection_ends_with_its_clients_certificate() {
    let site = Site::new();
    let own = site.certificates.ca();
    let server = Server::start(site, &[&own], &[]);
    let mut kept = connect(&server, &server.site.gateway.clone());
    let pair = server.site.gateway.clone();
    let short = Pair { chain: server.site.certificates.path("short.pem"), key: pair.key };
    // On a slow machine, a certificate may expire before its connection is served.
    let idle = [5, 20, 80].into_iter().find_map(|seconds| {
        expiring(&server.site.certificates, &short, seconds);
        server.ping(&short).then(|| connect(&server, &short))
    });
    expect_closed(idle.expect("a connection before the certificate expires"));
    eventually("the expired certificate is refused", || !server.ping(&short));
    assert!(is_served(&mut kept), "the other certificate is valid");
}

/// An expired list says nothing about its certificates any more.
#[test]
fn a_connection_ends_with_the_revocation_list_of_its_clients_ca() {
    let site = Site::new();
    let (own, pair) = (site.certificates.ca(), site.gateway.clone());
    let list = site.certificates.path("clients.crl");
    site.certificates.revoke(&[], &list);
    let mut server = Server::start(site, &[&own], &["--client-crl", list.to_str().expect("UTF-8")]);
    let shown = |server: &Server, name: &str| server.server.process.metric(name, &[]);
    let first = shown(&server, "quadrille_crl_next_update_seconds");
    assert!(first > 0.0 && shown(&server, "quadrille_ca_not_after_seconds") > 0.0);
    assert!(shown(&server, "quadrille_certificate_not_after_seconds") > 0.0);
    // On a slow machine, a list may expire before a connection is served.
    let idle = ["5", "20", "80"].into_iter().find_map(|seconds| {
        server.site.certificates.revoke_until(&["-crlsec", seconds], &[], &list);
        server.server.process.signal("HUP");
        server.ping(&pair).then(|| connect(&server, &pair))
    });
    expect_closed(idle.expect("a connection before the list expires"));
    eventually("the expired list refuses its clients", || !server.ping(&pair));
    server.server.process.wait_for_log("has expired; certificates of this CA are rejected");
    server.site.certificates.revoke(&[], &list);
    eventually("the new list accepts them", || server.ping(&pair));
}

/// Writes a certificate for a key that expires after this many seconds.
fn expiring(ca: &Certificates, pair: &Pair, seconds: i64) {
    let read = |path: &Path| std::fs::read(path).expect("reading");
    let key = PKey::private_key_from_pem(&read(&pair.key)).expect("a key");
    let (issuer, signer) =
        (X509::from_pem(&read(&ca.ca())), PKey::private_key_from_pem(&read(&ca.path("ca.key"))));
    let (issuer, signer) = (issuer.expect("the CA"), signer.expect("the CA's key"));
    let now = crate::support::clock::unix_now();
    let mut name = X509Name::builder().expect("a name");
    name.append_entry_by_nid(Nid::COMMONNAME, "short.example").expect("a name");
    let mut builder = X509::builder().expect("a certificate");
    builder.set_version(2).expect("version 3");
    builder.set_subject_name(&name.build()).expect("a subject");
    builder.set_issuer_name(issuer.subject_name()).expect("an issuer");
    builder.set_not_before(&Asn1Time::from_unix(now - 60).expect("a time")).expect("a beginning");
    builder.set_not_after(&Asn1Time::from_unix(now + seconds).expect("a time")).expect("an end");
    builder.set_pubkey(&key).expect("a key");
    builder.sign(&signer, MessageDigest::sha256()).expect("a signature");
    std::fs::write(&pair.chain, builder.build().to_pem().expect("PEM")).expect("writing");
}

#[test]
fn generated_keys_are_removed_by_clients_of_their_own_policy_entry_only() {
    let site = Site::new();
    let [one, two, fleet_one, fleet_two] =
        ["one.example", "two.example", "a.fleet.example", "b.fleet.example"]
            .map(|name| site.certificates.ecdsa("P-256", &[name]));
    let policy = site.certificates.path("policy.yaml");
    let entry = |client: &str| format!("  - client: \"{client}\"\n    operations: [sign, generate]\n");
    let entries = ["one.example", "two.example", "*.fleet.example"].map(entry).concat();
    std::fs::write(&policy, format!("clients:\n{entries}")).expect("writing");
    let server = KeyServer::start(&site, &["--policy", policy.to_str().expect("UTF-8")]);
    let client = |pair: &Pair| client_as(&site, &server, pair, Protocol::Batched, false);
    block_on(async {
        let (one, two) = (client(&one), client(&two));
        let (fleet_one, fleet_two) = (client(&fleet_one), client(&fleet_two));
        let key = one.generate(KeyType::EcdsaP256, "www").await.expect("a key");
        for other in [&two, &fleet_one] {
            assert_eq!(refusal(other.remove(key.ski()).await), Some(ErrorCode::Denied));
        }
        let shared = fleet_one.generate(KeyType::EcdsaP256, "www").await.expect("a key");
        assert_eq!(refusal(one.remove(shared.ski()).await), Some(ErrorCode::Denied));
        assert_eq!(server.process.metric("quadrille_keyserver_keys", &[]), 2.0);
        one.remove(key.ski()).await.expect("its own key");
        fleet_two.remove(shared.ski()).await.expect("a key of its policy entry");
        eventually("both keys are removed", || server.process.metric("quadrille_keyserver_keys", &[]) == 0.0);
    });
}

fn refusal(result: Result<(), KeyChangeError>) -> Option<ErrorCode> {
    match result.err()?.refusals().next()?.1 {
        Refusal::Refused(code) => Some(*code),
        other => panic!("{other}"),
    }
}
