//! Client certificates with requirements beyond the CA.

use super::{Running, certificate, chain, gateway, get, listener, place, says};
use boring::{
    hash::MessageDigest,
    pkey::PKey,
    ssl::{SslConnector, SslMethod, SslVerifyMode},
    x509::X509,
};
use quadrille_config::model::{
    AltName, AltNameKind, ClientAuth, ClientCheck, Source, TextMatch, TextRule, Tls, TlsPolicy, Version,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

/// A client's certificate and key, PEM.
struct Client {
    certificate: String,
    key: String,
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn client(&self, serial: u8, names: Vec<SanType>) -> Client {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a client");
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        params.subject_alt_names = names;
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Client { certificate, key: key.serialize_pem() }
    }

    fn check(&self) -> ClientCheck {
        *ClientCheck::ca(Source::inline(self.pem.clone()), place())
    }

    fn revoke(&self, serial: u8) -> Source {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[serial]),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Source::inline(list.signed_by(&self.issuer).expect("a list").pem().expect("PEM"))
    }
}

impl Client {
    fn x509(&self) -> X509 {
        X509::from_pem(self.certificate.as_bytes()).expect("a certificate")
    }

    fn digest(&self) -> [u8; 32] {
        let digest = self.x509().digest(MessageDigest::sha256()).expect("a digest");
        digest[..].try_into().expect("32 bytes")
    }

    fn key_digest(&self) -> [u8; 32] {
        let key = self.x509().public_key().and_then(|key| key.public_key_to_der()).expect("a key");
        boring::sha::sha256(&key)
    }
}

/// Returns whether a client is served.
fn served(address: SocketAddr, client: Option<&Client>) -> bool {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a builder");
    builder.set_verify(SslVerifyMode::NONE);
    if let Some(client) = client {
        builder.set_certificate(&client.x509()).expect("a certificate");
        let key = PKey::private_key_from_pem(client.key.as_bytes()).expect("a key");
        builder.set_private_key(&key).expect("its key");
    }
    let mut configuration = builder.build().configure().expect("a configuration");
    configuration.set_verify_hostname(false);
    let tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(crate::support::PATIENCE)).expect("a timeout");
    configuration.connect("a.example", tcp).is_ok_and(|mut tls| get(&mut tls, "a.example", "/").is_ok())
}

#[test]
fn certificates_are_pinned_named_and_revoked() {
    let (authority, other) = (Authority::new("one CA"), Authority::new("another CA"));
    let uri = |text: &str| vec![SanType::URI(text.try_into().expect("ASCII"))];
    let (one, two) = (authority.client(1, uri("spiffe://a/one")), authority.client(2, uri("spiffe://b/two")));
    let stranger = other.client(1, uri("spiffe://a/one"));
    let named = |kind, rule| {
        let text = TextMatch { rule, ignore_case: false };
        ClientCheck { names: vec![AltName { kind, text }], ..authority.check() }
    };
    let revoked = Some((authority.revoke(2), place()));
    let checks = [
        // The requirement, and whether `one`, `two`, the stranger and a client without a certificate are accepted.
        (authority.check(), [true, true, false, false]),
        (named(AltNameKind::Uri, TextRule::Prefix("spiffe://a/".into())), [true, false, false, false]),
        (named(AltNameKind::Dns, TextRule::Prefix("spiffe://a/".into())), [false; 4]),
        (ClientCheck { certificates: vec![two.digest()], ..authority.check() }, [false, true, false, false]),
        (
            ClientCheck { public_keys: vec![one.key_digest()], ..authority.check() },
            [true, false, false, false],
        ),
        (
            ClientCheck {
                certificates: vec![stranger.digest()],
                public_keys: vec![one.key_digest()],
                ..authority.check()
            },
            [true, false, false, false],
        ),
        (
            ClientCheck { certificates: vec![stranger.digest()], ..ClientCheck::default() },
            [false, false, true, false],
        ),
        (ClientCheck { revoked, ..authority.check() }, [true, false, false, false]),
    ];
    let server = certificate("a.example");
    let versions = [(Version::Tls12, Version::Tls12), (Version::Tls13, Version::Tls13)];
    let listeners = checks.iter().flat_map(|(check, _)| {
        let server = &server;
        versions.map(move |(min, max)| {
            let client_auth = ClientAuth::Required(Box::new(check.clone()));
            let policy = TlsPolicy { min, max, client_auth, ..TlsPolicy::default() };
            let mut asking = chain(&[], Some(server), says("hi"));
            asking.tls = Some(Arc::new(Tls { certificates: vec![Arc::clone(server)], policy }));
            listener(vec![asking])
        })
    });
    let running = Running::start(gateway(listeners.collect()));
    for (index, (check, expected)) in checks.iter().enumerate() {
        for version in 0..2 {
            let address = running.address(2 * index + version);
            let clients = [Some(&one), Some(&two), Some(&stranger), None];
            assert_eq!(clients.map(|client| served(address, client)), *expected, "{version} {check:?}");
        }
    }
    let statistics = running.runtime.block_on(running.control.statistics()).expect("it runs");
    let chain = |listener: usize| &statistics.listeners[listener].chains[0];
    assert_eq!((chain(0).no_certificate, chain(0).bad_certificate, chain(0).failures), (1, 1, 2));
    assert_eq!((chain(2).bad_name, chain(6).bad_pin), (1, 1));
}
