//! `quadrille demo`: something to try at once.

use crate::{
    flags::{self, AdminFlag},
    logging::Logging,
    process,
};
use quadrille_config::{
    model::{
        Action, CertificateSource, Chain, Domain, Gateway, Http, KeySource, Listener, PathMatch, Place,
        Respond, Route, RouteTable, Serve, Source, Tls, TlsPolicy,
    },
    values,
};
use quadrille_gateway::{Bound, ConfigurationSource};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

/// Serves https://localhost:8443 with a certificate for localhost that is made on the spot, so that there is nothing
/// to set up. Browsers will warn, because nobody vouches for that certificate.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", value_parser = values::listen_address, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Metrics and health, in plain HTTP: an address or off.
    #[arg(long, value_name = "ADDRESS", value_parser = flags::admin, default_value = "127.0.0.1:9901")]
    admin: AdminFlag,
    #[command(flatten)]
    logging: Logging,
}

const PAGE: &str = include_str!("demo.html");

impl Demo {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let certificate =
            self_signed().map_err(|error| vec![format!("cannot make a certificate: {error}")])?;
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
        let model =
            Gateway { listeners: vec![listener], admin: self.admin.into_model(), ..Gateway::default() };
        let origin = ConfigurationSource::fixed(&model);
        process::run(model, origin, &self.logging, announce)
    }
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

fn announce(bound: &Bound) {
    let Some(port) = bound.listeners.first().map(SocketAddr::port) else { return };
    println!("Quadrille serves https://localhost:{port}/ with a certificate that it has just made. Try:");
    println!();
    println!("    curl -k https://localhost:{port}/hello");
    println!("    curl -k --http2 --tls-max 1.2 -v https://localhost:{port}/hello");
    if let Some(admin) = bound.admin {
        println!("    curl http://{admin}/metrics");
    }
    println!();
    println!("Stop it with Ctrl-C.");
}
