//! Trust anchor identifiers (draft-ietf-tls-trust-anchor-ids-06): chains for clients that request their trust anchor, and
//! for the others. The clients are BoringSSL's.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, KeyServer, Pair, Site, checked, document, eventually,
    quadrille, refused, serve, succeed, tls_client,
};
use boring::{
    base64::encode_block,
    ssl::{
        Ssl, SslContext, SslContextBuilder, SslRef, SslSession, SslSessionCacheMode,
        SslSignatureAlgorithm as Algorithm, SslStream, SslVerifyMode, SslVersion,
    },
    x509::{X509, X509Ref},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_config::model::TrustAnchorId;
use quadrille_engine::MlDsa;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    ptr, slice,
    sync::{Arc, Mutex},
};

const HOST: &[&str] = &["localhost"];

/// A chain with a trust anchor, and one for all clients, with the same key.
struct Chains {
    certificates: Certificates,
    landmark: Pair,
    standalone: Pair,
}

impl Chains {
    fn ecdsa() -> Self {
        let certificates = Certificates::new();
        let standalone = certificates.ecdsa("P-256", HOST);
        Self::of(certificates, standalone)
    }

    /// Signatures of this type wait for a compute thread.
    fn ml_dsa() -> Self {
        let certificates = Certificates::new();
        let standalone = certificates.ml_dsa(MlDsa::MlDsa44, HOST);
        Self::of(certificates, standalone)
    }

    fn of(certificates: Certificates, standalone: Pair) -> Self {
        let landmark = Pair { chain: certificates.path("landmark.pem"), ..standalone.clone() };
        certificates.certify(&landmark, HOST);
        Self { certificates, landmark, standalone }
    }

    /// Returns a document with a listener for both chains.
    fn document(&self, anchor: &str, keys: &str) -> String {
        with_all(&[entry(&self.standalone, ""), entry(&self.landmark, anchor)], keys)
    }
}

fn entry(pair: &Pair, anchor: &str) -> String {
    let experimental = match anchor {
        "" => String::new(),
        anchor => format!(", experimental: {{trust_anchor: {anchor}}}"),
    };
    format!("{{chain: {}, key: {}{experimental}}}", pair.chain.display(), pair.key.display())
}

fn with_all(certificates: &[String], keys: &str) -> String {
    let certificates = certificates.join(", ");
    document(&[format!("{{address: \"127.0.0.1:0\", certificates: [{certificates}], {keys}}}")], "")
}

/// Observations of a client during certificate verification.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    serial: String,
    /// Whether the server has said that the chain ends at a requested trust anchor.
    matched: bool,
    /// Trust anchors that the server has announced.
    available: Vec<u8>,
}

impl Seen {
    fn of(ssl: &SslRef) -> Self {
        let (mut list, mut length) = (ptr::null(), 0);
        // SAFETY: the connection is live, and the list is copied while it is.
        let (matched, available) = unsafe {
            ffi::SSL_get0_peer_available_trust_anchors(ssl.as_ptr(), &raw mut list, &raw mut length);
            let available = if length == 0 { &[][..] } else { slice::from_raw_parts(list, length) };
            (ffi::SSL_peer_matched_trust_anchor(ssl.as_ptr()) == 1, available.to_vec())
        };
        Self { serial: serial(&ssl.peer_certificate().expect("a certificate")), matched, available }
    }
}

fn serial(certificate: &X509Ref) -> String {
    let number = certificate.serial_number().to_bn().expect("a number");
    number.to_hex_str().expect("hexadecimal").to_string()
}

fn serial_in(chain: &Path) -> String {
    serial(&X509::from_pem(&fs::read(chain).expect("reading")).expect("a certificate"))
}

fn list(ids: &[&str]) -> Vec<u8> {
    let mut list = Vec::new();
    for id in ids {
        let id: TrustAnchorId = id.parse().expect("an identifier");
        list.push(u8::try_from(id.as_bytes().len()).expect("a short one"));
        list.extend(id.as_bytes());
    }
    list
}

/// Makes a client request trust anchors, and record what it sees. `None` sends no extension.
fn configure(builder: &mut SslContextBuilder, ids: Option<&[&str]>, seen: &Arc<Mutex<Option<Seen>>>) {
    if let Some(ids) = ids.map(list) {
        // SAFETY: the context is live, and the list has the length that is passed.
        let ok =
            unsafe { ffi::SSL_CTX_set1_requested_trust_anchors(builder.as_ptr(), ids.as_ptr(), ids.len()) };
        assert_eq!(ok, 1);
    }
    let offered = [Algorithm::ECDSA_SECP256R1_SHA256, Algorithm::ML_DSA_44, Algorithm::ML_DSA_65];
    builder.set_verify_algorithm_prefs(&offered).expect("algorithms");
    let seen = Arc::clone(seen);
    builder.set_custom_verify_callback(SslVerifyMode::PEER, move |ssl| {
        *seen.lock().expect("observations") = Some(Seen::of(ssl));
        Ok(())
    });
}

/// A client over TCP, which resumes its last session.
struct Client {
    context: SslContext,
    seen: Arc<Mutex<Option<Seen>>>,
    session: Arc<Mutex<Option<SslSession>>>,
}

impl Client {
    fn requesting(ids: Option<&[&str]>) -> Self {
        Self::configured(ids, |_| {})
    }

    fn configured(ids: Option<&[&str]>, more: impl FnOnce(&mut SslContextBuilder)) -> Self {
        let (seen, session) = (Arc::default(), Arc::<Mutex<Option<SslSession>>>::default());
        let kept = Arc::clone(&session);
        let context = tls_client(|builder| {
            configure(builder, ids, &seen);
            builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
            builder.set_new_session_callback(move |_, new| *kept.lock().expect("a session") = Some(new));
            more(builder);
        });
        Self { context, seen, session }
    }

    /// Gets a page. Returns what the client saw; `None` after resumption.
    fn visit(&self, address: SocketAddr) -> Option<Seen> {
        let stream = self.connect(address);
        let seen = self.seen.lock().expect("observations").take();
        assert_eq!(stream.ssl().session_reused(), seen.is_none());
        seen
    }

    fn connect(&self, address: SocketAddr) -> SslStream<TcpStream> {
        let mut ssl = Ssl::new(&self.context).expect("a session");
        ssl.set_hostname("localhost").expect("a name");
        if let Some(session) = self.session.lock().expect("a session").take() {
            // SAFETY: the session is of this context.
            unsafe { ssl.set_session(&session) }.expect("a session");
        }
        let tcp = TcpStream::connect(address).expect("a connection");
        let mut stream = SslStream::new(ssl, tcp).expect("a stream");
        stream.connect().expect("a handshake");
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("a request");
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        assert!(response.ends_with(b"right"), "{}", response.escape_ascii());
        stream
    }
}

fn seen_by(ids: Option<&[&str]>, address: SocketAddr) -> Seen {
    Client::requesting(ids).visit(address).expect("a full handshake")
}

#[test]
fn the_requested_trust_anchor_decides() {
    let chains = Chains::ecdsa();
    let other = chains.certificates.ml_dsa(MlDsa::MlDsa65, HOST);
    let text = with_all(
        &[entry(&chains.standalone, ""), entry(&chains.landmark, "32473.1"), entry(&other, "32473.2.7")],
        "respond: right",
    );
    let file = Configuration::new(&text);
    let gateway = Gateway::with_config(&file.path(), 1);
    let [landmark, standalone, other] =
        [&chains.landmark, &chains.standalone, &other].map(|pair| serial_in(&pair.chain));
    // ML-DSA comes first among them.
    let available = list(&["32473.2.7", "32473.1"]);
    for (ids, serial, matched) in [
        (None::<&[&str]>, &standalone, false),
        (Some(&[][..]), &standalone, false),
        (Some(&["32473.3"]), &standalone, false),
        (Some(&["32473"]), &standalone, false),
        (Some(&["32473.1"]), &landmark, true),
        (Some(&["1.2.3", "32473.1", "32473"]), &landmark, true),
        (Some(&["32473.2.7"]), &other, true),
        (Some(&["32473.1", "32473.2.7"]), &other, true),
    ] {
        let available = if ids.is_some() { available.clone() } else { Vec::new() };
        let expected = Seen { serial: serial.clone(), matched, available };
        assert_eq!(seen_by(ids, gateway.address(0)), expected, "{ids:?}\n{}", gateway.log());
    }
    let old = Client::configured(Some(&["32473.1"]), |builder| {
        builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
    });
    let seen = old.visit(gateway.address(0)).expect("a full handshake");
    assert_eq!(seen, Seen { serial: standalone, matched: false, available: Vec::new() });
}

#[test]
fn queued_signatures_complete_over_tcp_and_quic() {
    let chains = Chains::ml_dsa();
    let file = Configuration::new(&chains.document("32473.1", "http3: on, respond: right"));
    let gateway = Gateway::with_config(&file.path(), 1);
    for (id, pair, matched) in [("32473.1", &chains.landmark, true), ("32473.2", &chains.standalone, false)] {
        let expected = Seen { serial: serial_in(&pair.chain), matched, available: list(&["32473.1"]) };
        assert_eq!(seen_by(Some(&[id]), gateway.address(0)), expected, "{}", gateway.log());
        let seen = Arc::default();
        let mut client =
            Http3Client::configured(&chains.certificates, |builder| configure(builder, Some(&[id]), &seen));
        assert_eq!(client.connect(gateway.address(0)).get("/").text(), "right");
        assert_eq!(*seen.lock().expect("observations"), Some(expected), "over QUIC");
    }
    let operations = gateway.metric("quadrille_key_operations_total", &["mldsa44", "ok"]);
    assert_eq!(operations, 4.0, "{}", gateway.metrics());
}

#[test]
fn sessions_resume_and_renewed_chains_are_served() {
    let chains = Chains::ml_dsa();
    let file = Configuration::new(&chains.document("32473.1", "respond: right"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let client = Client::requesting(Some(&["32473.1"]));
    let first = client.visit(gateway.address(0)).expect("a full handshake");
    assert_eq!(client.visit(gateway.address(0)), None, "the second visit resumes");
    let renewed = Pair { chain: chains.certificates.path("renewed.pem"), ..chains.landmark.clone() };
    chains.certificates.certify(&renewed, HOST);
    let expected = serial_in(&renewed.chain);
    fs::rename(&renewed.chain, &chains.landmark.chain).expect("replacing the chain");
    let serial = || seen_by(Some(&["32473.1"]), gateway.address(0)).serial;
    eventually("the old chain is still served", || serial() != first.serial);
    assert_eq!(serial(), expected);
    file.replace(&with_all(&[entry(&chains.standalone, "")], "respond: right"));
    gateway.signal("HUP");
    let standalone = serial_in(&chains.standalone.chain);
    eventually("the setting is still in force", || serial() == standalone);
}

#[test]
fn key_servers_sign_for_such_chains() {
    let site = Site::new();
    let pair = site.certificates.ml_dsa(MlDsa::MlDsa44, HOST);
    site.give_away(&pair, "site");
    let running = KeyServer::start(&site, &[]);
    let key = site.keyless(&[running.name()], "");
    let listener = format!(
        "{{address: \"127.0.0.1:0\", certificates: [{{chain: {}, key: {key}, experimental: {{trust_anchor: \
         32473.1}}}}], respond: right}}",
        pair.chain.display()
    );
    let file = Configuration::new(&document(&[listener], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    assert!(seen_by(Some(&["32473.1"]), gateway.address(0)).matched, "{}", gateway.log());
}

/// Writes a list of certificate properties before a chain: identifier, groups, and that it is negotiated.
fn add_properties(chain: &Path, properties: &[(u16, &[u8])]) {
    let long =
        |bytes: &[u8]| [&u16::try_from(bytes.len()).expect("a short one").to_be_bytes()[..], bytes].concat();
    let list: Vec<u8> =
        properties.iter().flat_map(|(kind, data)| [&kind.to_be_bytes()[..], &long(data)].concat()).collect();
    let block = format!(
        "-----BEGIN CERTIFICATE PROPERTIES-----\n{}\n-----END CERTIFICATE PROPERTIES-----\n",
        encode_block(&long(&list))
    );
    let text = fs::read_to_string(chain).expect("reading");
    fs::write(chain, block + &text).expect("writing");
}

/// The list of one group: the landmarks 32473.2.5 and later. Each component has a lower and an upper bound.
const FROM_FIVE: &[u8] = &[0, 11, 10, 0x81, 0xfd, 0x59, 0x81, 0xfd, 0x59, 2, 2, 5, 0x80];

#[test]
fn certificate_properties_have_identifier_and_groups() {
    let chains = Chains::ecdsa();
    let id: TrustAnchorId = "32473.1".parse().expect("an identifier");
    let properties = [(0, id.as_bytes()), (1, FROM_FIVE), (2, &[]), (77, b"unknown")];
    add_properties(&chains.landmark.chain, &properties);
    let file = Configuration::new(&chains.document("properties", "respond: right"));
    let gateway = Gateway::with_config(&file.path(), 1);
    for (id, matched) in [
        ("32473.1", true),
        ("32473.2.5", true),
        ("32473.2.300", true),
        ("32473.2.4", false),
        ("32473.2", false),
    ] {
        assert_eq!(seen_by(Some(&[id]), gateway.address(0)).matched, matched, "{id}\n{}", gateway.log());
    }
}

#[test]
fn properties_without_negotiation_are_for_all_clients() {
    let chains = Chains::ecdsa();
    let id: TrustAnchorId = "32473.1".parse().expect("an identifier");
    add_properties(&chains.standalone.chain, &[(0, id.as_bytes())]);
    let file = Configuration::new(&with_all(&[entry(&chains.standalone, "properties")], "respond: right"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let serial = serial_in(&chains.standalone.chain);
    let expected = Seen { serial, matched: false, available: list(&["32473.1"]) };
    assert_eq!(seen_by(Some(&["32473.2"]), gateway.address(0)), expected);
}

#[test]
fn a_configured_ocsp_response_is_stapled() {
    let chains = Chains::ecdsa();
    let response = chains.certificates.path("empty.ocsp");
    fs::write(&response, [0x30, 0]).expect("writing");
    let (chain, key) = (chains.landmark.chain.display(), chains.landmark.key.display());
    let landmark = format!(
        "{{chain: {chain}, key: {key}, ocsp: {}, experimental: {{trust_anchor: 32473.1}}}}",
        response.display()
    );
    let file = Configuration::new(&with_all(&[landmark, entry(&chains.standalone, "")], "respond: right"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let client = Client::configured(Some(&["32473.1"]), SslContextBuilder::enable_ocsp_stapling);
    assert_eq!(client.connect(gateway.address(0)).ssl().ocsp_status(), Some(&[0x30, 0][..]));
}

#[test]
fn what_cannot_work_is_reported() {
    let chains = Chains::ecdsa();
    let text = chains.document("properties", "respond: right");
    let refusal = refused(serve().arg("--config").arg(Configuration::new(&text).path()));
    assert!(
        refusal.contains("landmark.pem: there is no PEM block BEGIN CERTIFICATE PROPERTIES"),
        "{refusal}"
    );
    add_properties(&chains.landmark.chain, &[(2, &[])]);
    let refusal = refused(serve().arg("--config").arg(Configuration::new(&text).path()));
    assert!(refusal.contains("landmark.pem: the certificate properties require a trust anchor"), "{refusal}");

    let text = chains.document("32473.1", "tls: {max: \"1.2\"}, respond: right");
    let refusal = refused(serve().arg("--config").arg(Configuration::new(&text).path()));
    assert!(refusal.contains("certificates with a trust anchor identifier need TLS 1.3"), "{refusal}");

    let check = |text: &str| checked(&Configuration::new(text).path());
    let alone = check(&with_all(&[entry(&chains.landmark, "32473.1")], "respond: right"));
    assert!(
        alone.contains("clients that do not request a trust anchor are rejected for `localhost`"),
        "{alone}"
    );
    let ignored = check(&with_all(&[entry(&chains.landmark, "")], "respond: right"));
    assert!(ignored.contains("landmark.pem are ignored, and the chain is for all clients"), "{ignored}");
}

#[test]
fn check_says_which_clients_receive_such_a_chain() {
    let chains = Chains::ecdsa();
    let file = Configuration::new(&chains.document("32473.1", "respond: right"));
    let said = succeed(quadrille("check").arg(file.path()));
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("certificates of ")).collect();
    let anchored = "certificates of 127.0.0.1:0, localhost: ecdsa-p256 for clients that request the trust anchor \
                    32473.1";
    assert_eq!(lines.last(), Some(&anchored), "{said}");
}
