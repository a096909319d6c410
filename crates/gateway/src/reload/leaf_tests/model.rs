//! A gateway with a leaf of every kind, and the files that it references.

use quadrille_config::model::{
    Acme, AcmeKeyType, AcmeOrder, Action, AltName, AltNameKind, CertificateSource, Chain, ClientAuth,
    ClientCheck, CookieMatch, Domain, Forward, Gateway, HeaderMatch, HeaderRule, Health, Http, KeySource,
    Keyless, KeylessTls, Listener, Mode, OutlierDetection, PathMatch, Place, QueryMatch, Redirect, Respond,
    Resumption, RetryOn, RetryPolicy, Route, RouteTable, Serve, Server, SessionCache, Source, TextMatch,
    TicketKeys, Tls, TlsPolicy, Upstream, UpstreamTls, VirtualHost, Weighted,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// The upstream of the route table.
pub(super) const ROUTED: &str = "routed";
/// The upstream of the TCP filter chain.
const PIPED: &str = "piped";

pub(super) fn place() -> Place {
    Place::flag("test")
}

/// Files, each with an equally valid alternative next to it.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// Returns the path of the alternative.
    pub(super) fn other(file: &Path) -> PathBuf {
        let mut path = file.as_os_str().to_owned();
        path.push(".other");
        path.into()
    }

    /// Writes a file with an identical alternative.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Source {
        self.write_pair(name, &content, &content)
    }

    fn write_pair(&self, name: &str, content: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> Source {
        let file = self.0.path().join(name);
        std::fs::write(&file, content).expect("a file");
        std::fs::write(Self::other(&file), other).expect("a file");
        Source::File(file)
    }
}

/// Two filter chains: HTTP with a local key, and TCP with a key on key servers.
pub(super) fn gateway(files: &Files) -> Gateway {
    let authority = Authority::new();
    let ca = files.write("ca.pem", &authority.pem);
    let revoked = files.write("revoked.pem", authority.revoked());
    let check = ClientCheck {
        ca: Some((ca.clone(), place())),
        revoked: Some((revoked, place())),
        certificates: vec![[1; 32]],
        public_keys: vec![[1; 32]],
        names: vec![AltName { kind: AltNameKind::Dns, text: TextMatch::exact("client.example") }],
    };
    let policy = TlsPolicy { client_auth: ClientAuth::Required(Box::new(check)), ..TlsPolicy::default() };
    let (chain, key) = authority.certificate(files, "local");
    let local = certificate(files, chain, KeySource::Pem(key));
    let local = Tls { certificates: vec![local], policy };
    let (chain, key) = authority.certificate(files, "remote");
    let remote =
        certificate(files, chain, KeySource::Keyless(Box::new(keyless(files, &authority, &ca, key))));
    let remote = Tls { certificates: vec![remote], policy: TlsPolicy::new(Mode::Tcp) };
    let (chain, key) = authority.certificate(files, "shown");
    let shown = certificate(files, chain, KeySource::Pem(key));
    let http = Chain::new(Some(local), Serve::Http(Http::new(route_table())), place());
    let mut listener = Listener::new(([127, 0, 0, 1], 0).into(), place(), http);
    listener.default_chain = Some(Chain::new(Some(remote), Serve::Tcp(vec![Weighted::all(PIPED)]), place()));
    Gateway {
        listeners: vec![listener],
        upstreams: BTreeMap::from([ROUTED, PIPED].map(|name| (name.to_owned(), upstream(&ca, &shown)))),
        resumption: resumption(files),
        acme: Some(Acme::new("state".into(), place())),
        ..Gateway::default()
    }
}

fn certificate(files: &Files, chain: Source, key: KeySource) -> Arc<CertificateSource> {
    const EMPTY_DER_SEQUENCE: [u8; 2] = [0x30, 0];
    let ocsp = Some(files.write("ocsp.der", EMPTY_DER_SEQUENCE));
    let (chain_place, key_place, ocsp_place) = (place(), place(), Some(place()));
    let names = vec!["example.com".to_owned()];
    let order = AcmeOrder { names, key_type: AcmeKeyType::EcdsaP256, profile: None, keyless: None };
    let order = Some(order);
    Arc::new(CertificateSource {
        chain,
        key,
        ocsp,
        poll_delay: None,
        chain_place,
        key_place,
        ocsp_place,
        order,
        trust_anchor: None,
    })
}

fn keyless(files: &Files, authority: &Authority, ca: &Source, fallback: Source) -> Keyless {
    let (certificate, key) = authority.certificate(files, "gateway");
    let tls =
        KeylessTls { ca: (ca.clone(), place()), certificate: (certificate, place()), key: (key, place()) };
    let servers = vec!["keys.example".parse().expect("an address")];
    Keyless { tls: Some(tls), fallback: Some(fallback), ..Keyless::new(servers) }
}

fn upstream(ca: &Source, certificate: &Arc<CertificateSource>) -> Upstream {
    let tls = UpstreamTls {
        ca: Some(ca.clone()),
        ca_place: Some(place()),
        certificate: Some(Arc::clone(certificate)),
        ..UpstreamTls::default()
    };
    let servers = vec![Server::new("127.0.0.1:2".to_owned(), place())];
    Upstream {
        health: Some(Health::default()),
        outlier_detection: Some(OutlierDetection::default()),
        tls: Some(tls),
        ..Upstream::new(servers, place())
    }
}

fn resumption(files: &Files) -> Resumption {
    let redis = "redis://127.0.0.1:1".parse().expect("an address");
    Resumption {
        tickets: TicketKeys::Fleet(place()),
        cache: SessionCache::Redis(redis, place()),
        fleet_secret: Some((files.write_pair("fleet.secret", [b'a'; 64], [b'b'; 64]), place())),
        redis_password: Some((files.write_pair("redis.password", "one", "two"), place())),
        redis_ca: Some(("ca.pem".into(), place())),
        ..Resumption::default()
    }
}

fn route_table() -> RouteTable {
    let on = RetryOn { reset: true, ..RetryOn::default() };
    let retry = RetryPolicy { on, retries: 1, per_try_timeout: None, idempotent_only: false, backoff: true };
    let forward = Forward { retry: Some(retry), ..Forward::to(ROUTED) };
    let header = HeaderMatch {
        name: "x-version".to_owned(),
        rule: HeaderRule::Present(true),
        invert: false,
        missing_is_empty: false,
    };
    let value = || Some(TextMatch::exact("1"));
    let query = QueryMatch { name: "version".to_owned(), value: value(), invert: false, decode: false };
    let cookie = CookieMatch { name: "version".to_owned(), value: value(), invert: false };
    let actions = [
        Action::Forward(Box::new(forward)),
        Action::Redirect(Box::new(Redirect::https())),
        Action::Respond(Respond::text("a text")),
    ];
    let route = |action| Route {
        headers: vec![header.clone()],
        query: vec![query.clone()],
        cookies: vec![cookie.clone()],
        ..Route::new(PathMatch::segments("/path"), action, place())
    };
    let host = VirtualHost::new(vec![Domain::Any], actions.into_iter().map(route).collect(), place());
    RouteTable { hosts: vec![host], ..RouteTable::default() }
}

/// A CA that issues and revokes certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate; returns it and its key.
    fn certificate(&self, files: &Files, name: &str) -> (Source, Source) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![format!("{name}.example")]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        (
            files.write(&format!("{name}.pem"), certificate),
            files.write(&format!("{name}.key"), key.serialize_pem()),
        )
    }

    /// Returns an empty revocation list.
    fn revoked(&self) -> String {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("PEM")
    }
}
