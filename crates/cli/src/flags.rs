//! Command-line flags as a second front end to the gateway's model.

use crate::acme_flags::AcmeFlags;
use crate::resumption_flags::ResumptionFlags;
use clap::Args;
use quadrille_config::{
    Problem, enums,
    model::{
        AccessLog, Action, Admin, BackendChoice, CertificateSource, Chain, ClientAuth, ClientCheck, Domain,
        Forward, Gateway, Group, Http, Http3, KeySource, Keyless, KeylessTls, Listener, Mode, PathMatch,
        Place, ProxyProtocolIn, Respond, Route, RouteTable, Serve, Server, Source, Tls, TlsPolicy, Upstream,
        Version, Weighted,
    },
    values,
};
use quadrille_keyless::Address;
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

/// One listener with one set of upstreams; for more, use a configuration file and --config.
#[derive(Args)]
pub(crate) struct Flags {
    /// Address to listen on: address:port, or only a port for all addresses. May be repeated.
    #[arg(long, value_name = "ADDRESS", value_parser = values::listen_address)]
    listen: Vec<SocketAddr>,
    /// Certificate chain in PEM, leaf first. Repeat, each with its --key, for more names or key types.
    #[arg(long, value_name = "FILE")]
    cert: Vec<PathBuf>,
    /// Private key in PEM, not encrypted.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    #[command(flatten)]
    acme: AcmeFlags,
    /// Use the private keys of this key server, host:port or unix:/path, instead of --key. May be repeated.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "key")]
    key_server: Vec<Address>,
    /// CA certificates in PEM that verify the key servers' certificates.
    #[arg(long, value_name = "FILE", requires = "key_server")]
    key_server_ca: Option<PathBuf>,
    /// The gateway's client certificate for key servers, in PEM.
    #[arg(long, value_name = "FILE", requires = "key_server")]
    key_server_cert: Option<PathBuf>,
    /// The private key for --key-server-cert.
    #[arg(long, value_name = "FILE", requires = "key_server")]
    key_server_key: Option<PathBuf>,
    /// Address of an upstream server, host:port. May be repeated; requests are load-balanced.
    #[arg(long, value_name = "ADDRESS", value_parser = values::server_address, conflicts_with = "respond")]
    upstream: Vec<String>,
    /// Respond to every request with this text, without an upstream.
    #[arg(long, value_name = "TEXT")]
    respond: Option<String>,
    /// The protocol inside TLS: http or tcp.
    #[arg(long, value_name = "MODE", value_parser = enums::word::<Mode>, default_value = "http")]
    mode: Mode,
    /// Event-loop threads [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    resumption: ResumptionFlags,
    /// Lowest TLS version: 1.0, 1.1, 1.2 or 1.3.
    #[arg(long, value_name = "VERSION", value_parser = enums::word::<Version>, default_value = "1.2")]
    tls_min: Version,
    /// Highest TLS version.
    #[arg(long, value_name = "VERSION", value_parser = enums::word::<Version>, default_value = "1.3")]
    tls_max: Version,
    /// Key-exchange groups, most preferred first [default: X25519MLKEM768,X25519,P-256,P-384].
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = enums::word::<Group>)]
    groups: Vec<Group>,
    /// Enable CBC cipher suites in TLS 1.2; TLS 1.0 and 1.1 have no others.
    #[arg(long)]
    cbc: bool,
    /// Enable RSA key exchange (no forward secrecy) in TLS 1.2 and below.
    #[arg(long)]
    static_rsa: bool,
    /// Accept RSA keys below 2048 bits.
    #[arg(long)]
    allow_weak_keys: bool,
    /// Require client certificates issued by these CAs (PEM).
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Certificate revocation lists (PEM), one for each CA in --client-ca.
    #[arg(long, value_name = "FILE", requires = "client_ca")]
    client_crl: Option<PathBuf>,
    /// Accept clients without a certificate despite --client-ca.
    #[arg(long, requires = "client_ca")]
    client_auth_optional: bool,
    /// Expect the PROXY protocol (v1 or v2) from a load balancer in front.
    #[arg(long)]
    proxy_protocol: bool,
    /// Serve HTTP/3 as well, over UDP on the same addresses.
    #[arg(long)]
    http3: bool,
    /// Metrics and health, in plain HTTP: an address or off [default: 127.0.0.1:9901].
    #[arg(long, value_name = "ADDRESS", value_parser = admin)]
    admin: Option<AdminFlag>,
    /// Access log: off, stdout or a file [default: off].
    #[arg(long, value_name = "WHERE", value_parser = values::access_log)]
    access_log: Option<AccessLog>,
    /// Backend for private-key operations: auto, gpu (auto, but do not start without one), lanes (no GPU) or scalar.
    #[arg(long, value_name = "BACKEND", value_parser = enums::word::<BackendChoice>, default_value = "auto")]
    backend: BackendChoice,
    /// Maximum time to wait for a batch to fill, as Envoy does; with 0, up to 1ms, and only while CPU is scarce.
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "0")]
    poll_delay: Duration,
    /// Compute threads [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = values::count)]
    compute_threads: Option<NonZeroUsize>,
    /// Time for which connections are still accepted after SIGTERM, while /ready fails [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    lame_duck: Option<Duration>,
    /// Maximum time that a drain waits for open connections [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = values::timeout)]
    drain_timeout: Option<Duration>,
}

/// The value of `--admin`.
#[derive(Clone)]
pub(crate) enum AdminFlag {
    Off,
    At(SocketAddr),
}

impl AdminFlag {
    pub(crate) fn into_model(self) -> Option<Admin> {
        match self {
            Self::Off => None,
            Self::At(address) => Some(Admin::new(address, Place::flag("--admin"))),
        }
    }
}

pub(crate) fn admin(text: &str) -> Result<AdminFlag, Problem> {
    if text == "off" { Ok(AdminFlag::Off) } else { values::admin_address(text).map(AdminFlag::At) }
}

/// Name of the only upstream that flags can describe.
const UPSTREAM: &str = "default";

impl Flags {
    /// Returns the model that these flags describe, or the problems found.
    pub(crate) fn into_gateway(self) -> Result<Gateway, Vec<String>> {
        self.check()?;
        let mut gateway = Gateway::default();
        let certificates = self.certificates();
        for &address in &self.listen {
            let tls = Tls { certificates: certificates.clone(), policy: self.tls() };
            let http3 = self.http3.then(Http3::default);
            let chain = Chain { http3, ..Chain::new(Some(tls), self.inside(), Place::flag("--listen")) };
            let mut listener = Listener::new(address, Place::flag("--listen"), chain);
            listener.proxy_protocol =
                if self.proxy_protocol { ProxyProtocolIn::Required } else { ProxyProtocolIn::Off };
            gateway.listeners.push(listener);
        }
        if !self.upstream.is_empty() {
            gateway.upstreams.insert(UPSTREAM.to_owned(), self.upstream());
        }
        gateway.engine.backend = self.backend;
        gateway.engine.poll_delay = self.poll_delay;
        gateway.engine.threads = self.compute_threads;
        gateway.acme = self.acme.account();
        gateway.resumption = self.resumption.into_model();
        gateway.threads = self.threads;
        gateway.lame_duck = self.lame_duck.unwrap_or(gateway.lame_duck);
        gateway.drain_timeout = self.drain_timeout.unwrap_or(gateway.drain_timeout);
        gateway.access_log = self.access_log.unwrap_or_default();
        if let Some(admin) = self.admin {
            gateway.admin = admin.into_model();
        }
        Ok(gateway)
    }

    fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = self.resumption.contradictions();
        problems.extend(self.acme.contradictions());
        if self.listen.is_empty() {
            problems.push("--listen is missing; for example: --listen 0.0.0.0:8443".to_owned());
        }
        if self.cert.is_empty() && !self.acme.is_used() {
            problems.push(
                "--cert is missing; for example: --cert chain.pem --key key.pem, or --acme EMAIL --domain NAME"
                    .to_owned(),
            );
        }
        if self.key_server.is_empty() && self.cert.len() != self.key.len() {
            problems.push(format!(
                "every --cert needs its --key: {} and {} were given",
                self.cert.len(),
                self.key.len()
            ));
        }
        let tls = [&self.key_server_ca, &self.key_server_cert, &self.key_server_key];
        let over_tcp = self.key_server.iter().any(|server| matches!(server, Address::Tcp { .. }));
        if over_tcp && !tls.iter().all(|file| file.is_some()) {
            problems.push(
                "key servers over TCP need --key-server-ca, --key-server-cert and --key-server-key"
                    .to_owned(),
            );
        }
        if self.upstream.is_empty() && self.respond.is_none() {
            problems.push("give --upstream HOST:PORT or --respond TEXT".to_owned());
        }
        if self.mode == Mode::Tcp && self.respond.is_some() {
            problems.push("--respond is for HTTP; --mode tcp needs an --upstream".to_owned());
        }
        if self.tls_min > self.tls_max {
            problems.push("--tls-min is above --tls-max".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn certificates(&self) -> Vec<Arc<CertificateSource>> {
        let ordered = self.acme.certificates();
        ordered.into_iter().chain(self.own_certificates()).collect()
    }

    fn own_certificates(&self) -> Vec<Arc<CertificateSource>> {
        let source = |(chain, key): (&PathBuf, KeySource)| {
            Arc::new(CertificateSource {
                chain: Source::File(chain.clone()),
                key,
                ocsp: None,
                poll_delay: None,
                chain_place: Place::flag("--cert"),
                key_place: Place::flag("--key"),
                ocsp_place: None,
                order: None,
                trust_anchor: None,
            })
        };
        match self.keyless() {
            Some(keyless) => {
                let remote = KeySource::Keyless(Box::new(keyless));
                self.cert.iter().map(|chain| source((chain, remote.clone()))).collect()
            }
            None => {
                let keys = self.key.iter().map(|key| KeySource::Pem(Source::File(key.clone())));
                self.cert.iter().zip(keys).map(source).collect()
            }
        }
    }

    fn keyless(&self) -> Option<Keyless> {
        if self.key_server.is_empty() {
            return None;
        }
        let file = |file: &Option<PathBuf>, flag| Some((Source::File(file.clone()?), Place::flag(flag)));
        let ca = file(&self.key_server_ca, "--key-server-ca");
        let certificate = file(&self.key_server_cert, "--key-server-cert");
        let key = file(&self.key_server_key, "--key-server-key");
        let tls = ca.zip(certificate).zip(key);
        let tls = tls.map(|((ca, certificate), key)| KeylessTls { ca, certificate, key });
        Some(Keyless { tls, ..Keyless::new(self.key_server.clone()) })
    }

    fn tls(&self) -> TlsPolicy {
        let mut tls = TlsPolicy::new(self.mode);
        tls.min = self.tls_min;
        tls.max = self.tls_max;
        if !self.groups.is_empty() {
            tls.groups.clone_from(&self.groups);
        }
        tls.cbc = self.cbc;
        tls.static_rsa = self.static_rsa;
        tls.allow_weak_keys = self.allow_weak_keys;
        if let Some(ca) = &self.client_ca {
            let auth = if self.client_auth_optional { ClientAuth::Optional } else { ClientAuth::Required };
            let mut check = ClientCheck::ca(Source::File(ca.clone()), Place::flag("--client-ca"));
            check.revoked =
                self.client_crl.clone().map(|crl| (Source::File(crl), Place::flag("--client-crl")));
            tls.client_auth = auth(check);
        }
        tls
    }

    /// Returns how the stream inside TLS is served.
    fn inside(&self) -> Serve {
        let action = match &self.respond {
            _ if self.mode == Mode::Tcp => return Serve::Tcp(vec![Weighted::all(UPSTREAM)]),
            Some(text) => Action::Respond(Respond::text(text.clone())),
            None => Action::Forward(Box::new(Forward::to(UPSTREAM))),
        };
        let route = Route::new(PathMatch::any(), action, Place::flag("--upstream"));
        Serve::Http(Http::new(RouteTable::by_weight([(Domain::Any, route)])))
    }

    fn upstream(&self) -> Upstream {
        let place = Place::flag("--upstream");
        let servers =
            self.upstream.iter().map(|address| Server::new(address.clone(), place.clone())).collect();
        Upstream::new(servers, place)
    }
}
