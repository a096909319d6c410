//! `quadrille ingress`.

use crate::{failure::Failure, schema};
use boring::{pkey::PKey, x509::X509};
use clap::Subcommand;
use quadrille_kubernetes::{Objects, Options, Translation, read, translate};
use std::{
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Ingress objects of Kubernetes.
#[derive(Subcommand)]
pub(crate) enum Ingress {
    Report(Report),
}

/// Show which annotations of ingress-nginx work, which work differently, and which do not.
///
/// Reads manifests, or the output of kubectl, in YAML or JSON, without a cluster. Ingress objects are translated as
/// ingress-nginx serves them: those of its class, the oldest first. The more objects the input has, the more is known:
/// Services and EndpointSlices (else servers are found by DNS), Secrets of certificates and passwords, IngressClass objects,
/// and the ConfigMap of ingress-nginx.
///
///   kubectl get ingress,ingressclass,service,endpointslice,configmap -A -o yaml | quadrille ingress report -
///   quadrille ingress report manifests.yaml secrets.yaml --config quadrille.yaml
///   quadrille check quadrille.yaml
///
/// A setting that guards (passwords, source ranges, client certificates) and does not work closes its paths in the
/// configuration: they respond with 503, under a comment that begins with CLOSED.
///
/// The exit status is 0 if all settings work, 1 if some do not, and 2 if a file cannot be read.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// The files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the configuration of quadrille serve to this file, readable by one user: it has the private keys of Secrets.
    /// `-` is standard output, and the report then goes to standard error.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write Gateway and HTTPRoute objects for what can be said there; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    to_gateway_api: Option<PathBuf>,
    /// Class of the Ingress objects.
    #[arg(long, value_name = "NAME", default_value = "nginx")]
    ingress_class: String,
    /// Controller of the IngressClass objects.
    #[arg(long, value_name = "NAME", default_value = "k8s.io/ingress-nginx")]
    controller_class: String,
    /// The ConfigMap of ingress-nginx, as NAMESPACE/NAME [default: the one with a usual name].
    #[arg(long, value_name = "NAME")]
    configmap: Option<String>,
    /// The Secret of the certificate for hosts without one, as NAMESPACE/NAME.
    #[arg(long, value_name = "NAME")]
    default_ssl_certificate: Option<String>,
    /// Address of HTTP.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:80")]
    http: String,
    /// Address of HTTPS.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:443")]
    https: String,
}

impl Ingress {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Report(report) => report.run(),
        }
    }
}

impl Report {
    fn run(self) -> Result<(), Failure> {
        let mut objects = Objects::default();
        for file in &self.files {
            let (name, text) = text_of(file).map_err(|problem| vec![problem])?;
            read(&text, &name, &mut objects).map_err(|error| vec![error.to_string()])?;
        }
        let options = Options {
            class: self.ingress_class,
            controller: self.controller_class,
            http: self.http,
            https: self.https,
            config_map: self.configmap,
            default_certificate: self.default_ssl_certificate,
            check_certificate,
            by_reference: false,
        };
        let Translation { yaml, report, .. } =
            translate(&objects, &options).map_err(|problem| vec![problem])?;
        let is_output = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new("-"));
        let is_taken = is_output(&self.config) || is_output(&self.to_gateway_api);
        if let Some(file) = &self.config {
            write(file, &yaml)?;
        }
        if let Some(file) = &self.to_gateway_api {
            write(file, &quadrille_kubernetes::gateway_api(&objects, &options))?;
        }
        match is_taken {
            true => eprint!("{report}"),
            false => schema::print(&report.to_string())?,
        }
        if report.has_refused() { Err(Failure::mistakes(Vec::new())) } else { Ok(()) }
    }
}

fn text_of(file: &Path) -> Result<(String, String), String> {
    if file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        return match read {
            Ok(_) => Ok(("standard input".to_owned(), text)),
            Err(error) => Err(format!("cannot read standard input: {error}")),
        };
    }
    let name = file.display().to_string();
    match std::fs::read_to_string(file) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(format!("cannot read {name}: {error}")),
    }
}

/// Writes a file that only its owner can read.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Ok(schema::print(text)?);
    }
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.map_err(|error| vec![format!("cannot write {}: {error}", file.display())])?;
    Ok(())
}

/// Checks that a chain and a key can be read, and belong together.
pub(crate) fn check_certificate(chain: &str, key: &str) -> Result<(), String> {
    let chain = X509::stack_from_pem(chain.as_bytes()).map_err(|_| "`tls.crt` cannot be read".to_owned())?;
    let key =
        PKey::private_key_from_pem(key.as_bytes()).map_err(|_| "`tls.key` cannot be read".to_owned())?;
    let first = chain.first().ok_or("`tls.crt` has no certificate")?;
    let public = first.public_key().map_err(|_| "`tls.crt` has a key of an unknown kind".to_owned())?;
    match public.public_eq(&key) {
        true => Ok(()),
        false => Err("`tls.key` does not belong to the certificate".to_owned()),
    }
}
