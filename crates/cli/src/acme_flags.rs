//! Flags for ACME certificates.

use clap::Args;
use quadrille_acme::Plan;
use quadrille_config::{
    acme_values, enums,
    model::{Acme, AcmeKeyType, AcmeOrder, CertificateSource, Place},
};
use std::{env, path::PathBuf, sync::Arc};

/// Certificates that are ordered from a certificate authority, and renewed in time.
#[derive(Args)]
pub(crate) struct AcmeFlags {
    /// Order and renew a certificate for --domain by ACME, with this email address as the account's contact; replaces
    /// --cert. You agree to the authority's terms of service.
    #[arg(long, value_name = "EMAIL", value_parser = acme_values::email, requires = "domain")]
    acme: Option<String>,
    /// A DNS name for the certificate, at which the authority must reach this gateway on port 443. May be repeated. A
    /// private authority may accept localhost and other names of one label.
    #[arg(long, value_name = "NAME", value_parser = acme_values::certificate_name, requires = "acme")]
    domain: Vec<String>,
    /// The authority's directory [default: Let's Encrypt].
    #[arg(long, value_name = "URL", value_parser = acme_values::directory_url, requires = "acme")]
    acme_directory: Option<String>,
    /// CA certificates in PEM that verify the directory's server [default: the system's].
    #[arg(long, value_name = "FILE", requires = "acme")]
    acme_ca: Option<PathBuf>,
    /// The certificate's key type: ecdsa-p256, ecdsa-p384, rsa-2048, rsa-3072 or rsa-4096 [default: ecdsa-p256].
    /// Repeat it for one certificate per type; each client receives one that it can verify.
    #[arg(long, value_name = "TYPE", value_parser = enums::word::<AcmeKeyType>, requires = "acme")]
    acme_key_type: Vec<AcmeKeyType>,
    /// Directory for the account, the certificates and their keys [default: $STATE_DIRECTORY/acme under systemd, or
    /// $XDG_STATE_HOME/quadrille/acme].
    #[arg(long, value_name = "DIRECTORY", requires = "acme")]
    state: Option<PathBuf>,
}

impl AcmeFlags {
    /// Returns whether any certificate is ordered.
    pub(crate) fn is_used(&self) -> bool {
        self.acme.is_some()
    }

    /// Returns the problems in the combination of flags.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_used() && self.state().is_none() {
            problems
                .push("--acme needs --state DIRECTORY: neither STATE_DIRECTORY nor HOME is set".to_owned());
        }
        let wildcards = self.domain.iter().filter(|name| name.starts_with("*."));
        problems.extend(wildcards.map(|name| {
            format!("--domain {name}: a wildcard needs the challenge dns-01: use a file with --config")
        }));
        let directory = self.acme_directory.as_deref().unwrap_or(Acme::LETS_ENCRYPT);
        let private = self.domain.iter().filter_map(|name| {
            let problem = acme_values::refuse_private_name(name, directory).err()?;
            Some(format!("--domain {name}: {problem}"))
        });
        problems.extend(private);
        problems
    }

    /// Returns the ACME account.
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

    /// Returns the certificates, one for each key type.
    pub(crate) fn certificates(&self) -> Vec<Arc<CertificateSource>> {
        let Some(account) = self.account() else { return Vec::new() };
        let certificate =
            |order| Arc::new(CertificateSource::ordered(&account, order, Place::flag("--domain")));
        self.orders().into_iter().map(certificate).collect()
    }

    /// Returns the plan of certificates to order.
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

/// Returns the default state directory of this name: below systemd's `STATE_DIRECTORY`, or the user's.
pub(crate) fn usual_state(name: &str) -> Option<PathBuf> {
    let directory = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own =
        || directory("XDG_STATE_HOME").or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    directory("STATE_DIRECTORY")
        .or_else(|| own().map(|state| state.join("quadrille")))
        .map(|state| state.join(name))
}
