//! `quadrille demo`: something to try at once.

use crate::{
    acme_flags::usual_state,
    flags::{self, AdminFlag},
    logging::Logging,
    process,
};
use quadrille_config::{
    acme_values,
    model::{
        Acme, AcmeKeyType, AcmeOrder, Action, CertificateSource, Chain, Domain, Gateway, Http, KeySource,
        Listener, PathMatch, Place, Respond, Route, RouteTable, Serve, Source, Tls, TlsPolicy,
    },
    values,
};
use quadrille_gateway::{Bound, ConfigurationSource};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

/// Serves https://localhost:8443 with a certificate for localhost that is made on the spot, so that there is nothing
/// to set up. Browsers will warn, because nobody vouches for that certificate. With --acme-directory the certificate is
/// ordered from a certificate authority instead, and renewed.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", value_parser = values::listen_address, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Metrics and health, in plain HTTP: an address or off.
    #[arg(long, value_name = "ADDRESS", value_parser = flags::admin, default_value = "127.0.0.1:9901")]
    admin: AdminFlag,
    /// Order the certificate by ACME from the authority with this directory. It must find this machine by the --domain, at
    /// port 443 as a rule: see --listen. You agree to its terms of service.
    #[arg(long, value_name = "URL", value_parser = acme_values::directory_url)]
    acme_directory: Option<String>,
    /// CA certificates in PEM that the directory's server must lead to [default: the system's].
    #[arg(long, value_name = "FILE", requires = "acme_directory")]
    acme_ca: Option<PathBuf>,
    /// The name in that certificate [default: localhost].
    #[arg(long, value_name = "NAME", value_parser = acme_values::certificate_name, requires = "acme_directory")]
    domain: Option<String>,
    /// Directory for the account, the certificate and its key [default: $XDG_STATE_HOME/quadrille/demo].
    #[arg(long, value_name = "DIRECTORY", requires = "acme_directory")]
    state: Option<PathBuf>,
    #[command(flatten)]
    logging: Logging,
}

const PAGE: &str = include_str!("demo.html");

impl Demo {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let acme = self.acme()?;
        let certificate = match &acme {
            Some(acme) => self.ordered(acme),
            None => self_signed().map_err(|error| vec![format!("cannot make a certificate: {error}")])?,
        };
        let place = Place::flag("demo");
        let page =
            Respond { status: 200, content_type: "text/html; charset=utf-8".into(), body: PAGE.into() };
        let hello = Respond::text("Hello from Quadrille.\n");
        let answers = [("", page), ("/hello", hello)].map(|(path, answer)| {
            (Domain::Any, Route::new(PathMatch::segments(path), Action::Respond(answer), place.clone()))
        });
        let tls = Tls { certificates: vec![Arc::new(certificate)], policy: TlsPolicy::default() };
        let serve = Serve::Http(Http::new(RouteTable::by_weight(answers)));
        let chain = Chain::new(Some(tls), serve, place.clone());
        let listener = Listener::new(self.listen, Place::flag("--listen"), chain);
        let announced = Announced { name: self.name(), directory: self.acme_directory.clone() };
        let admin = self.admin.into_model();
        let model = Gateway { listeners: vec![listener], admin, acme, ..Gateway::default() };
        let origin = ConfigurationSource::fixed(&model);
        process::run(model, origin, &self.logging, move |bound| announced.print(bound))
    }

    fn name(&self) -> String {
        self.domain.clone().unwrap_or_else(|| "localhost".to_owned())
    }

    /// The account, if the certificate is ordered.
    fn acme(&self) -> Result<Option<Acme>, Vec<String>> {
        let Some(directory) = &self.acme_directory else { return Ok(None) };
        let none = || vec!["--state is missing: neither XDG_STATE_HOME nor HOME says where".to_owned()];
        let state = self.state.clone().or_else(|| usual_state("demo")).ok_or_else(none)?;
        let preset = Acme::new(state, Place::flag("--acme-directory"));
        let ca_file = self.acme_ca.clone().map(|file| (file, Place::flag("--acme-ca")));
        Ok(Some(Acme { directory: directory.clone(), ca_file, ..preset }))
    }

    fn ordered(&self, acme: &Acme) -> CertificateSource {
        let key_type = AcmeKeyType::EcdsaP256;
        let order = AcmeOrder { names: vec![self.name()], key_type, profile: None, keyless: None };
        CertificateSource::ordered(acme, order, Place::flag("--acme-directory"))
    }
}

/// What a user is told.
struct Announced {
    name: String,
    /// Where the certificate is ordered.
    directory: Option<String>,
}

fn self_signed() -> Result<CertificateSource, rcgen::Error> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    params.subject_alt_names.extend(loopback.map(SanType::IpAddress));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Quadrille demo");
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let place = Place::flag("demo");
    Ok(CertificateSource {
        chain: Source::inline(certificate.pem()),
        key: KeySource::Pem(Source::inline(key.serialize_pem())),
        ocsp: None,
        poll_delay: None,
        chain_place: place.clone(),
        key_place: place,
        ocsp_place: None,
        order: None,
    })
}

impl Announced {
    fn print(&self, bound: &Bound) {
        let Some(port) = bound.listeners.first().map(SocketAddr::port) else { return };
        let (name, directory) = (&self.name, self.directory.as_deref());
        let trust = match directory {
            None => {
                println!(
                    "Quadrille serves https://{name}:{port}/ with a certificate that it has just made. Try:"
                );
                "-k"
            }
            Some(directory) => {
                println!("Quadrille serves https://{name}:{port}/ with a certificate of {directory}:");
                println!("once it is there, in some seconds as a rule. The log says so, or why not. Try:");
                "--cacert ROOT"
            }
        };
        println!();
        println!("    curl {trust} https://{name}:{port}/hello");
        println!("    curl {trust} --http2 --tls-max 1.2 -v https://{name}:{port}/hello");
        if let Some(admin) = bound.admin {
            println!("    curl http://{admin}/metrics");
        }
        println!();
        println!("Stop it with Ctrl-C.");
    }
}
