//! `quadrille demo`: a working HTTPS server without configuration.

mod announced;
mod certificates;
mod load;

use crate::{
    acme_flags::usual_state,
    flags::{self, AdminFlag},
    logging::Logging,
    process,
};
use announced::Announced;
use load::DemoLoad;
use quadrille_config::{
    acme_values,
    model::{
        Acme, AcmeKeyType, AcmeOrder, Action, Admin, CertificateSource, Chain, Domain, Gateway, Http,
        Listener, PathMatch, Place, Respond, Route, RouteTable, Serve, Tls, TlsPolicy,
    },
    values,
};
use quadrille_gateway::ConfigurationSource;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

/// Serve an HTTPS demo without configuration, with self-signed certificates and a built-in page.
///
/// Serves https://localhost:8443 with self-signed certificates for localhost, one with an RSA key and one with an
/// ECDSA key. Browsers warn about them. With --load, built-in clients create traffic for the dashboard, and at the
/// end the CPU time saved by batching is printed. With --acme-directory the certificate is ordered from a certificate
/// authority instead, and renewed.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", value_parser = values::listen_address, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Dashboard, metrics and health, in plain HTTP: an address or off.
    #[arg(long, value_name = "ADDRESS", value_parser = flags::admin, default_value = "127.0.0.1:9901")]
    admin: AdminFlag,
    /// Run built-in clients for this time: full and resumed handshakes, RSA and ECDSA, at the highest rate that this
    /// machine can handle.
    #[arg(long, value_name = "TIME", value_parser = values::duration, num_args = 0..=1, default_missing_value = "20s",
          conflicts_with = "acme_directory")]
    load: Option<Duration>,
    /// Order the certificate by ACME from the authority with this directory URL. It must reach this machine at
    /// --domain, usually on port 443: see --listen. You agree to its terms of service.
    #[arg(long, value_name = "URL", value_parser = acme_values::directory_url)]
    acme_directory: Option<String>,
    /// CA certificates in PEM that verify the directory's server [default: the system's].
    #[arg(long, value_name = "FILE", requires = "acme_directory")]
    acme_ca: Option<PathBuf>,
    /// The DNS name for that certificate [default: localhost].
    #[arg(long, value_name = "NAME", value_parser = acme_values::certificate_name, requires = "acme_directory")]
    domain: Option<String>,
    /// Directory for the account, the certificate and its key [default: $XDG_STATE_HOME/quadrille/demo].
    #[arg(long, value_name = "DIRECTORY", requires = "acme_directory")]
    state: Option<PathBuf>,
    #[command(flatten)]
    logging: Logging,
}

const PAGE: &str = include_str!("page.html");

impl Demo {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let acme = self.acme()?;
        let certificates = match &acme {
            Some(acme) => vec![self.ordered(acme)],
            None => certificates::self_signed()
                .map_err(|error| vec![format!("cannot make a certificate: {error}")])?,
        };
        let announced = Announced { name: self.name(), directory: self.acme_directory.clone() };
        let admin = self.admin.into_model();
        let place = Place::flag("demo");
        let page = Respond {
            status: 200,
            content_type: "text/html; charset=utf-8".into(),
            body: page(admin.as_ref()).into(),
        };
        let hello = Respond::text("Hello from Quadrille.\n");
        let answers = [("", page), ("/hello", hello)].map(|(path, answer)| {
            (Domain::Any, Route::new(PathMatch::segments(path), Action::Respond(answer), place.clone()))
        });
        let tls = Tls {
            certificates: certificates.into_iter().map(Arc::new).collect(),
            policy: TlsPolicy::default(),
        };
        let serve = Serve::Http(Http::new(RouteTable::by_weight(answers)));
        let mut chain = Chain::new(Some(tls), serve, place.clone());
        // The clients of `--load` compete with the server for this machine's CPU, and wait for as long as that takes.
        chain.timeouts.handshake_deadline = None;
        let listener = Listener::new(self.listen, Place::flag("--listen"), chain);
        let load = self.load.map(|time| DemoLoad { time });
        let model = Gateway { listeners: vec![listener], admin, acme, ..Gateway::default() };
        let origin = ConfigurationSource::fixed(&model);
        process::run(model, origin, &self.logging, move |bound| {
            announced.print(bound);
            if let (Some(load), Some(address)) = (load, bound.listeners.first()) {
                load.start(*address);
            }
        })?;
        announced::print_what_was_saved();
        Ok(())
    }

    fn name(&self) -> String {
        self.domain.clone().unwrap_or_else(|| "localhost".to_owned())
    }

    /// Returns the ACME account, if the certificate is ordered.
    fn acme(&self) -> Result<Option<Acme>, Vec<String>> {
        let Some(directory) = &self.acme_directory else { return Ok(None) };
        acme_values::refuse_private_name(&self.name(), directory)
            .map_err(|problem| vec![format!("--domain {}: {problem}", self.name())])?;
        let none = || vec!["--state is missing: neither XDG_STATE_HOME nor HOME is set".to_owned()];
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

/// Returns the page with the address of the dashboard. A port that is not assigned yet is printed later.
fn page(admin: Option<&Admin>) -> String {
    let dashboard = match admin.and_then(|admin| admin.address) {
        None => "the dashboard is disabled by <code>--admin off</code>".to_owned(),
        Some(address) if address.port() == 0 => {
            "the command has printed the address of the dashboard".to_owned()
        }
        Some(address) => {
            format!("<a href=\"http://{address}/\">the dashboard</a>, at <code>http://{address}/</code>")
        }
    };
    PAGE.replace("DASHBOARD", &dashboard)
}
