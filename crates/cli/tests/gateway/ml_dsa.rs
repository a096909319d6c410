//! ML-DSA certificates (RFC 9881): clients that verify them, older clients of the same listener, keys of every form,
//! upstreams and key servers. The clients are BoringSSL's; OpenSSL 3.0 is an older one.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, KeyServer, Pair, Site, configuration, curl,
    document, eventually, listener,
    ml_dsa::{MlDsaAuthority, algorithm, der, key_type, label, write_key},
    output, quadrille, refused, s_client, secrets_of, serve, succeed, tls_client,
};
use boring::{
    pkey::{Id, PKey},
    ssl::{Ssl, SslSession, SslSessionCacheMode, SslSignatureAlgorithm as Algorithm, SslStream, SslVersion},
};
use boring_sys as ffi;
use foreign_types::ForeignType;
use quadrille_engine::MlDsa;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
};

const HOST: &[&str] = &["localhost"];

/// Signatures that clients without post-quantum algorithms offer.
const CLASSICAL: [Algorithm; 2] = [Algorithm::ECDSA_SECP256R1_SHA256, Algorithm::RSA_PSS_RSAE_SHA256];

/// Returns a listener with these certificates.
fn with_all(pairs: &[&Pair], keys: &str) -> String {
    let shown: Vec<_> = pairs
        .iter()
        .map(|pair| format!("{{chain: {}, key: {}}}", pair.chain.display(), pair.key.display()))
        .collect();
    format!("{{address: \"127.0.0.1:0\", certificates: [{}], {keys}}}", shown.join(", "))
}

fn seen_by(certificates: &Certificates, address: SocketAddr, offered: &[Algorithm]) -> Id {
    let connector = Connector::offering(&certificates.ca(), offered);
    let mut client = connector.http(address).expect("a connection");
    assert_eq!(client.get("/").expect("a response").text(), "ok");
    client.key_type()
}

#[test]
fn each_parameter_set_serves_a_page() {
    let certificates = Certificates::new();
    let pairs = MlDsa::ALL.map(|set| certificates.ml_dsa(set, HOST));
    let listeners: Vec<_> = pairs.iter().map(|pair| listener(pair, "http3: on, respond: ok")).collect();
    let file = Configuration::new(&document(&listeners, ""));
    let gateway = Gateway::with_config(&file.path(), pairs.len());
    for (index, set) in MlDsa::ALL.into_iter().enumerate() {
        let address = gateway.address(index);
        assert_eq!(seen_by(&certificates, address, &[algorithm(set)]), key_type(set));
        let mut over_quic = Http3Client::offering(&certificates, &[algorithm(set)]);
        assert_eq!(over_quic.connect(address).get("/").text(), "ok");
        let counted = gateway.metric("quadrille_handshakes_total", &["full", label(set)]);
        assert_eq!(counted, 2.0, "{}", gateway.metrics());
        let operations = gateway.metric("quadrille_key_operations_total", &[label(set), "ok"]);
        assert_eq!(operations, 2.0, "{}", gateway.metrics());
        assert!(
            Connector::offering(&certificates.ca(), &CLASSICAL).http(address).is_err(),
            "a client that cannot verify ML-DSA"
        );
    }
}

#[test]
fn each_client_gets_what_it_can_verify() {
    let certificates = Certificates::new();
    let (rsa, ecdsa) = (certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST));
    let [small, medium] = [MlDsa::MlDsa44, MlDsa::MlDsa65].map(|set| certificates.ml_dsa(set, HOST));
    let file =
        Configuration::new(&document(&[with_all(&[&rsa, &ecdsa, &medium, &small], "respond: ok")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let [p256, pss] = CLASSICAL;
    for (offered, expected) in [
        (&[p256, pss][..], Id::EC),
        (&[pss], Id::RSA),
        (&[p256, Algorithm::ML_DSA_44], key_type(MlDsa::MlDsa44)),
        (&[p256, Algorithm::ML_DSA_44, Algorithm::ML_DSA_65], key_type(MlDsa::MlDsa65)),
        (&[Algorithm::ML_DSA_44], key_type(MlDsa::MlDsa44)),
        (&[Algorithm::ML_DSA_87, pss, p256], Id::EC),
    ] {
        assert_eq!(seen_by(&certificates, gateway.address(0), offered), expected);
    }
    for version in ["-tls1_3", "-tls1_2"] {
        let seen = s_client(gateway.address(0), &certificates.ca(), &[version]).expect("an older client");
        assert_eq!(seen.signature(), "ECDSA", "{version}");
    }
    // TLS 1.2 has no signatures of ML-DSA, although its clients may offer them.
    let old = tls_client(|builder| {
        builder.set_verify_algorithm_prefs(&[Algorithm::ML_DSA_44, p256]).expect("algorithms");
        builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
    });
    let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
    let mut stream = SslStream::new(Ssl::new(&old).expect("a session"), tcp).expect("a stream");
    stream.connect().expect("a handshake");
    let certificate = stream.ssl().peer_certificate().expect("a certificate");
    assert_eq!(certificate.public_key().expect("a key").id(), Id::EC);
}

/// A certificate counts as verifiable only with the signatures of its chain (RFC 8446 section 4.2.3).
#[test]
fn the_signatures_of_a_chain_count() {
    let certificates = Certificates::new();
    let (rsa, ecdsa) = (certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST));
    let authority = MlDsaAuthority::new(MlDsa::MlDsa87);
    authority.certify(&ecdsa, HOST);
    let ca = certificates.path("both-cas.pem");
    let own = authority.certificate.to_pem().expect("PEM");
    fs::write(&ca, [fs::read(certificates.ca()).expect("the CA"), own].concat()).expect("writing");
    let file = Configuration::new(&document(&[with_all(&[&rsa, &ecdsa], "respond: ok")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let seen = |offered: &[Algorithm]| {
        let connector = Connector::offering(&ca, offered);
        connector.http(gateway.address(0)).expect("a connection").key_type()
    };
    let [p256, pss] = CLASSICAL;
    assert_eq!(seen(&[p256, pss]), Id::RSA);
    assert_eq!(seen(&[p256, pss, Algorithm::ML_DSA_65]), Id::RSA);
    assert_eq!(seen(&[p256, pss, Algorithm::ML_DSA_87]), Id::EC);
}

#[test]
fn a_renewed_certificate_is_served_and_sessions_resume() {
    let certificates = Certificates::new();
    let pair = certificates.ml_dsa(MlDsa::MlDsa65, HOST);
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok"]);
    let kept: Arc<Mutex<Option<SslSession>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let context = tls_client(|builder| {
        builder.set_verify_algorithm_prefs(&[Algorithm::ML_DSA_65]).expect("algorithms");
        builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        builder.set_new_session_callback(move |_, session| *keep.lock().expect("a session") = Some(session));
    });
    let visit = || {
        let mut ssl = Ssl::new(&context).expect("a session");
        ssl.set_hostname("localhost").expect("a name");
        if let Some(session) = kept.lock().expect("a session").take() {
            // SAFETY: the session is of this context.
            unsafe { ssl.set_session(&session) }.expect("a session");
        }
        let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
        let mut stream = SslStream::new(ssl, tcp).expect("a stream");
        stream.connect().expect("a handshake");
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("a request");
        let _ = stream.read_to_end(&mut Vec::new());
        let serial = stream.ssl().peer_certificate().expect("a certificate").serial_number().to_bn();
        (
            serial.expect("a number").to_hex_str().expect("hexadecimal").to_string(),
            stream.ssl().session_reused(),
        )
    };
    let (first, resumed) = visit();
    assert!(!resumed && visit().1, "the second visit resumes");
    let operations = || gateway.metric("quadrille_key_operations_total", &["mldsa65", "ok"]);
    assert_eq!(operations(), 1.0, "no signature when resuming");
    let renewed = Pair { chain: certificates.path("renewed.pem"), ..pair.clone() };
    certificates.certify(&renewed, HOST);
    fs::rename(&renewed.chain, &pair.chain).expect("replacing the certificate");
    let serial = || {
        let connector = Connector::offering(&certificates.ca(), &[Algorithm::ML_DSA_65]);
        connector.http(gateway.address(0)).expect("a connection").serial()
    };
    eventually("the old certificate is still served", || serial() != first);
}

/// Parts of a key of ML-DSA: its seed and its expanded form.
struct Parts {
    seed: [u8; 32],
    expanded: Vec<u8>,
}

impl Parts {
    /// Reads the seed from BoringSSL's form, and expands it by AWS-LC.
    fn of(pair: &Pair) -> Self {
        let key = PKey::private_key_from_pem(&fs::read(&pair.key).expect("reading")).expect("a key");
        let (mut seed, mut length) = ([0; 32], 32);
        let mut expanded = vec![0; MlDsa::MlDsa44.private_key_bytes()];
        let mut expanded_length = expanded.len();
        // SAFETY: buffers have the lengths that are passed, and the key is freed.
        unsafe {
            assert_eq!(ffi::EVP_PKEY_get_private_seed(key.as_ptr(), seed.as_mut_ptr(), &raw mut length), 1);
            let id = aws_lc_sys::NID_MLDSA44;
            let other = aws_lc_sys::EVP_PKEY_pqdsa_new_raw_private_key(id, seed.as_ptr(), seed.len());
            let (to, length) = (expanded.as_mut_ptr(), &raw mut expanded_length);
            assert_eq!(aws_lc_sys::EVP_PKEY_get_raw_private_key(other, to, length), 1);
            aws_lc_sys::EVP_PKEY_free(other);
        }
        Self { seed, expanded }
    }

    fn both(&self) -> Vec<u8> {
        der(0x30, &[der(4, &self.seed), der(4, &self.expanded)].concat())
    }
}

/// Number of ML-DSA-44 in the arc of NIST's signature algorithms.
const ML_DSA_44: u8 = 17;

#[test]
fn keys_of_all_forms_are_served() {
    let certificates = Certificates::new();
    let pair = certificates.ml_dsa(MlDsa::MlDsa44, HOST);
    let parts = Parts::of(&pair);
    let forms = [der(0x80, &parts.seed), der(4, &parts.expanded), parts.both()];
    let pairs = forms.iter().zip(["seed", "expanded", "both"]).map(|(form, name)| {
        let key = certificates.path(&format!("{name}.key"));
        write_key(&key, ML_DSA_44, &[], form);
        Pair { key, ..pair.clone() }
    });
    let listeners: Vec<_> = pairs.map(|pair| listener(&pair, "respond: ok")).collect();
    let file = Configuration::new(&document(&listeners, ""));
    let gateway = Gateway::with_config(&file.path(), listeners.len());
    for index in 0..listeners.len() {
        let seen = seen_by(&certificates, gateway.address(index), &[Algorithm::ML_DSA_44]);
        assert_eq!(seen, key_type(MlDsa::MlDsa44));
    }
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_the_reason() {
    let certificates = Certificates::new();
    let pair = certificates.ml_dsa(MlDsa::MlDsa44, HOST);
    let other = certificates.ml_dsa(MlDsa::MlDsa44, &["other.test"]);
    let parts = Parts::of(&pair);
    let mixed = Parts { seed: Parts::of(&other).seed, expanded: parts.expanded.clone() };
    let key = certificates.path("bad.key");
    let seed = der(0x80, &parts.seed);
    let check = |reason: &str| {
        let secrets = secrets_of(&key);
        let bad = Pair { key: key.clone(), ..pair.clone() };
        let mut command = serve();
        command.args(["--listen", "127.0.0.1:0", "--admin", "off", "--respond", "ok"]);
        command.arg("--cert").arg(&bad.chain).arg("--key").arg(&bad.key);
        let by_flags = refused(&mut command);
        let file = Configuration::new(&document(&[listener(&bad, "respond: ok")], ""));
        let (good, by_check) = output(quadrille("check").arg(file.path()));
        assert!(!good && by_check.contains("quadrille.yaml:4: "), "{by_check}");
        for text in [by_flags, by_check] {
            assert!(text.contains(reason) && text.contains("bad.key"), "no {reason:?}: {text}");
            assert!(secrets.iter().all(|secret| !text.contains(secret)), "a line of the key: {text}");
        }
    };
    fs::copy(&other.key, &key).expect("copying");
    check("does not match the certificate");
    write_key(&key, ML_DSA_44, &[], &seed[..20]);
    check(
        "it should contain a seed of 32 bytes, an expanded key of 2560 bytes, or both (RFC 9881 section 6)",
    );
    write_key(&key, ML_DSA_44, &[], &der(4, &parts.expanded[..2000]));
    check("malformed ML-DSA-44 private key");
    write_key(&key, ML_DSA_44, &[], &mixed.both());
    check("inconsistent ML-DSA-44 private key");
    write_key(&key, 32, &[], &seed);
    check("HashML-DSA, which certificates cannot have");
    write_key(&key, ML_DSA_44, &[5, 0], &seed);
    check("algorithm parameters, which must be absent");
    let pem = fs::read(&pair.key).expect("reading");
    let text = String::from_utf8(pem).expect("PEM");
    let truncated: Vec<_> =
        text.lines().enumerate().filter(|(line, _)| *line != 1).map(|(_, text)| text).collect();
    fs::write(&key, truncated.join("\n")).expect("writing");
    check("private key is malformed");
}

#[test]
fn tls_12_alone_has_no_use_for_such_a_certificate() {
    let certificates = Certificates::new();
    let pairs = [certificates.ecdsa("P-256", HOST), certificates.ml_dsa(MlDsa::MlDsa44, HOST)];
    let listener = with_all(&[&pairs[0], &pairs[1]], "tls: {max: \"1.2\"}, respond: ok");
    let file = Configuration::new(&document(&[listener], ""));
    let text = refused(serve().arg("--config").arg(file.path()));
    assert!(text.contains("certificates with ML-DSA keys need TLS 1.3"), "{text}");
}

/// Returns the lines of `quadrille check` about certificates.
fn selections(listeners: &[String]) -> Vec<String> {
    let text = succeed(quadrille("check").arg(Configuration::new(&document(listeners, "")).path()));
    text.lines().filter(|line| line.starts_with("certificates of ")).map(str::to_owned).collect()
}

#[test]
fn check_says_what_known_clients_receive() {
    let certificates = Certificates::new();
    let [rsa, ecdsa] = [certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST)];
    let [small, medium] = [MlDsa::MlDsa44, MlDsa::MlDsa65].map(|set| certificates.ml_dsa(set, HOST));
    let alone = certificates.ecdsa("P-384", &["alone.test"]);
    let below = certificates.ecdsa("P-521", &["*.below.test"]);
    let beside = certificates.rsa(2048, &["*.below.test"]);
    MlDsaAuthority::new(MlDsa::MlDsa87).certify(&below, &["*.below.test"]);
    let said = selections(&[
        with_all(&[&rsa, &ecdsa, &medium, &small, &alone, &below, &beside], "http3: on, respond: ok"),
        with_all(&[&small], "respond: ok"),
        with_all(&[&rsa, &alone], "respond: ok"),
    ]);
    let old = "OpenSSL 3.0, Safari 17";
    let expected = [
        // Chrome has no P-521.
        "*.below.test: rsa2048 for Chrome 150, OpenSSL 3.0, Safari 17; ecdsa-p521 for Go 1.27, rustls 0.23.44"
            .to_owned(),
        format!("localhost: mldsa65 for Chrome 150, Go 1.27, rustls 0.23.44; ecdsa-p256 for {old}"),
        format!("localhost: mldsa44 for Chrome 150, Go 1.27, rustls 0.23.44; none for {old}"),
    ];
    let expected = expected.map(|line| format!("certificates of 127.0.0.1:0, {line}"));
    assert_eq!(said, expected);
}

/// One gateway is the other's upstream; both have ML-DSA certificates and verify each other's.
#[test]
fn upstreams_and_clients_are_verified() {
    let certificates = Certificates::new();
    let front = certificates.ecdsa("P-256", HOST);
    let ca = certificates.ca();
    for set in MlDsa::ALL {
        let origin = certificates.ml_dsa(set, &["origin.example"]);
        let own = certificates.ml_dsa(set, &["gateway.example"]);
        let text = listener(
            &origin,
            &format!("tls: {{client_auth: {{mode: required, ca: {}}}}}, respond: right", ca.display()),
        );
        let behind = Configuration::new(&document(&[text], ""));
        let behind = Gateway::with_config(&behind.path(), 1);
        let upstream = |certificate: &str| {
            format!(
                "web: {{servers: [\"{}\"], tls: {{server_name: origin.example, ca: {}, {certificate}}}}}",
                behind.address(0),
                ca.display()
            )
        };
        let shown = format!("certificate: {{chain: {}, key: {}}}", own.chain.display(), own.key.display());
        let text = document(&[listener(&front, "upstream: web")], &upstream(&shown));
        let file = Configuration::new(&text);
        let gateway = Gateway::with_config(&file.path(), 1);
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "right", "{set:?}\n{}", gateway.log());
        let counted = behind.metric("quadrille_handshakes_total", &["full", label(set)]);
        assert_eq!(counted, 1.0, "{}", behind.metrics());
    }
}

/// BoringSSL signs for the gateway's own connections, and does not know expanded keys.
#[test]
fn a_client_certificate_needs_the_seed() {
    let certificates = Certificates::new();
    let front = certificates.ecdsa("P-256", HOST);
    let own = certificates.ml_dsa(MlDsa::MlDsa44, &["gateway.example"]);
    let expanded = Parts::of(&own).expanded;
    write_key(&own.key, ML_DSA_44, &[], &der(4, &expanded));
    let shown = format!("certificate: {{chain: {}, key: {}}}", own.chain.display(), own.key.display());
    let upstream = format!("web: {{servers: [\"127.0.0.1:1\"], tls: {{server_name: a.test, {shown}}}}}");
    let file = Configuration::new(&document(&[listener(&front, "upstream: web")], &upstream));
    let text = refused(serve().arg("--config").arg(file.path()));
    assert!(text.contains("contains no seed") && text.contains("mldsa44-gateway.example.key"), "{text}");
}

#[test]
fn key_servers_hold_such_keys_and_have_such_certificates() {
    let mut site = Site::new();
    let pair = site.certificates.ml_dsa(MlDsa::MlDsa65, HOST);
    site.give_away(&pair, "site");
    site.server = site.certificates.ml_dsa(MlDsa::MlDsa44, &["localhost", "keys.example"]);
    site.gateway = site.certificates.ml_dsa(MlDsa::MlDsa87, &["gateway.example"]);
    let running = KeyServer::start(&site, &[]);
    for mode in ["batched", "compatible"] {
        let key = site.keyless(&[running.name()], &format!("protocol: {mode}"));
        let text = configuration::document(&[site.listener(&pair.chain, &key, "")], "");
        let file = Configuration::new(&text);
        let gateway = Gateway::with_config(&file.path(), 1);
        let connector = Connector::offering(&site.certificates.ca(), &[Algorithm::ML_DSA_65]);
        assert_eq!(connector.get(gateway.address(0), "/", "").text(), "right", "{mode}\n{}", gateway.log());
    }
    let signed = running.process.metric("quadrille_key_operations_total", &["mldsa65", "ok"]);
    assert_eq!(signed, 2.0, "{}", running.process.metrics());
}
