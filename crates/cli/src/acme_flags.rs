//! The flags of certificates that are ordered.

use clap::Args;
use quadrille_acme::Plan;
use quadrille_config::{
    acme_values,
    model::{Acme, AcmeKeyType, AcmeOrder, CertificateSource, Place},
    words,
};
use std::{env, path::PathBuf, sync::Arc};

/// Certificates that are ordered from a certificate authority, and renewed in time.
#[derive(Args)]
pub(crate) struct AcmeFlags {
    /// Order a certificate for the --domain by ACME, with an account of this mail address, and renew it; replaces --cert.
    /// You agree to the authority's terms of service.
    #[arg(long, value_name = "EMAIL", value_parser = acme_values::email, requires = "domain")]
    acme: Option<String>,
    /// A DNS name in that certificate, under which the authority must reach this gateway at port 443. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = acme_values::certificate_name, requires = "acme")]
    domain: Vec<String>,
    /// The authority's directory [default: Let's Encrypt].
    #[arg(long, value_name = "URL", value_parser = acme_values::directory_url, requires = "acme")]
    acme_directory: Option<String>,
    /// CA certificates in PEM that verify the directory's server [default: the system's].
    #[arg(long, value_name = "FILE", requires = "acme")]
    acme_ca: Option<PathBuf>,
    /// The key of the certificate: ecdsa-p256, ecdsa-p384, rsa-2048, rsa-3072 or rsa-4096 [default: ecdsa-p256]. Repeat it
    /// for a certificate of each type, of which each client gets the one that it can verify.
    #[arg(long, value_name = "TYPE", value_parser = words::word::<AcmeKeyType>, requires = "acme")]
    acme_key_type: Vec<AcmeKeyType>,
    /// Directory for the account, the certificates and their keys [default: $STATE_DIRECTORY/acme under systemd, or
    /// $XDG_STATE_HOME/quadrille/acme].
    #[arg(long, value_name = "DIRECTORY", requires = "acme")]
    state: Option<PathBuf>,
}

impl AcmeFlags {
    /// Whether any certificate is ordered.
    pub(crate) fn is_used(&self) -> bool {
        self.acme.is_some()
    }

    /// What cannot work.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_used() && self.state().is_none() {
            problems.push(
                "--acme needs --state DIRECTORY: neither STATE_DIRECTORY nor HOME says where".to_owned(),
            );
        }
        let wildcards = self.domain.iter().filter(|name| name.starts_with("*."));
        problems.extend(wildcards.map(|name| {
            format!("--domain {name}: a wildcard needs the challenge dns-01: write a file, and use --config")
        }));
        problems
    }

    /// The account.
    pub(crate) fn account(&self) -> Option<Acme> {
        let email = self.acme.clone()?;
        let preset = Acme::new(self.state()?, Place::flag("--acme"));
        Some(Acme {
            email: Some(email),
            directory: self.acme_directory.clone().unwrap_or(preset.directory),
            ca_file: self.acme_ca.clone().map(|file| (file, Place::flag("--acme-ca"))),
            ..preset
        })
    }

    /// The certificates, one for each type of key.
    pub(crate) fn certificates(&self) -> Vec<Arc<CertificateSource>> {
        let Some(account) = self.account() else { return Vec::new() };
        let certificate =
            |order| Arc::new(CertificateSource::ordered(&account, order, Place::flag("--domain")));
        self.orders().into_iter().map(certificate).collect()
    }

    /// What is ordered.
    pub(crate) fn plan(&self) -> Option<Plan> {
        self.account().map(|account| Plan::new(account, self.orders()))
    }

    fn orders(&self) -> Vec<AcmeOrder> {
        let preset = [AcmeKeyType::EcdsaP256];
        let key_types = if self.acme_key_type.is_empty() { &preset[..] } else { &self.acme_key_type };
        let order =
            |&key_type| AcmeOrder { names: self.domain.clone(), key_type, profile: None, keyless: None };
        key_types.iter().map(order).collect()
    }

    fn state(&self) -> Option<PathBuf> {
        self.state.clone().or_else(|| usual_state("acme"))
    }
}

/// Where a directory of this name is kept when nobody says where: for systemd's unit, or for the user.
pub(crate) fn usual_state(name: &str) -> Option<PathBuf> {
    let directory = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own =
        || directory("XDG_STATE_HOME").or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    directory("STATE_DIRECTORY")
        .or_else(|| own().map(|state| state.join("quadrille")))
        .map(|state| state.join(name))
}
