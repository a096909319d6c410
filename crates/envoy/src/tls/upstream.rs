//! TLS towards servers.

use super::{
    certificate::{Certificate, certificate},
    downstream::validations,
    parameters::parameters,
    secret::{Content, Secret, SecretReference, secret_reference},
    validation::Validation,
};
use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{AltNameKind, KeySource, Place, Source, TextRule, TlsPolicy, UpstreamTls},
};
use std::{collections::BTreeMap, sync::Arc};

/// `envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`, its secrets still by name.
#[derive(Clone, Debug)]
pub struct ClusterTls {
    /// Sent to servers.
    pub sni: Option<String>,
    validation: Option<Validation>,
    validation_secret: Option<SecretReference>,
    certificate: Option<Certificate>,
    certificate_secret: Option<SecretReference>,
    place: Place,
    /// What is wrong with it, unless it is for a control plane.
    pub(crate) unsupported: Option<Diagnostic>,
}

/// Reads what a cluster's `transport_socket` says of TLS.
pub(crate) fn upstream(field: &Field<'_>) -> Option<ClusterTls> {
    let message = field.message(&schema::UPSTREAM_TLS)?;
    let mut tls = ClusterTls {
        sni: message.get("sni").and_then(|sni| sni.text()).filter(|sni| !sni.is_empty()).map(str::to_owned),
        validation: None,
        validation_secret: None,
        certificate: None,
        certificate_secret: None,
        place: field.place(),
        unsupported: None,
    };
    let Some(common_field) = message.get("common_tls_context") else { return Some(tls) };
    let common = common_field.message(&schema::COMMON_TLS)?;
    (tls.validation, tls.validation_secret) = validations(&common)?;
    if let Some(parameters_field) = common.get("tls_params") {
        let mut policy = TlsPolicy::default();
        parameters(&parameters_field, &mut policy)?;
        let default = TlsPolicy::default();
        if !policy.ciphers.is_empty() || policy.groups != default.groups || policy.min > default.min {
            tls.unsupported = Some(Diagnostic::new(
                &parameters_field.place(),
                Problem::new(
                    "refused: versions, suites and curves towards servers cannot be chosen",
                    "remove it",
                ),
            ));
        }
    }
    // What the protocol is towards a server is said by the cluster's HTTP options.
    common.list("alpn_protocols");
    (tls.certificate, tls.certificate_secret) = client_certificate(&common)?;
    Some(tls)
}

/// What is shown to servers, written here or in a secret.
fn client_certificate(common: &Message<'_>) -> Option<(Option<Certificate>, Option<SecretReference>)> {
    let here = common.list("tls_certificates");
    let named = common.list("tls_certificate_sds_secret_configs");
    if let Some(second) = here.iter().chain(&named).nth(1) {
        return second.fail(Problem::new("clients show one certificate", "remove the others"));
    }
    let here = here.first().map(|field| certificate(field));
    let named = named.first().map(|field| secret_reference(field));
    Some((
        here.map_or(Some(None), |here| here.map(Some))?,
        named.map_or(Some(None), |named| named.map(Some))?,
    ))
}

impl ClusterTls {
    /// The secret that it names.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretReference> {
        self.validation_secret.iter().chain(&self.certificate_secret)
    }

    /// The certificate and key that are shown to servers, both PEM, if they are written in place.
    pub fn client_certificate(&self) -> Option<(&Source, &Source)> {
        let source = &self.certificate.as_ref()?.source;
        match &source.key {
            KeySource::Pem(key) => Some((&source.chain, key)),
            KeySource::Keyless(_) => None,
        }
    }

    /// The CAs that servers' certificates must lead to, PEM, if they are written in place.
    pub fn trusted_ca(&self) -> Option<&Source> {
        self.validation.as_ref()?.ca.as_ref().map(|(source, _)| source)
    }

    /// The model's form.
    ///
    /// # Errors
    /// If a secret is not there, or more is asked of servers than can be verified.
    pub(crate) fn resolve(&self, secrets: &BTreeMap<String, Arc<Secret>>) -> Result<UpstreamTls, Diagnostic> {
        let mut validation = self.validation.clone().unwrap_or_default();
        if let Some(reference) = &self.validation_secret {
            validation = match secrets.get(&reference.name).map(|secret| &secret.content) {
                Some(Content::Validation(secret)) => validation.merged(secret.clone()),
                Some(_) => {
                    let text = format!("the secret `{}` is no `validation_context`", reference.name);
                    return Err(Diagnostic::new(&reference.place, text));
                }
                None => return Err(reference.missing()),
            };
        }
        let refuse = |reason: Problem| {
            let message = format!("refused: {}", reason.message);
            Err(Diagnostic::new(&self.place, Problem { message, ..reason }))
        };
        if !validation.certificates.is_empty() || !validation.public_keys.is_empty() {
            return refuse(Problem::new(
                "hashes of servers' certificates are not compared",
                "verify them by a `trusted_ca`",
            ));
        }
        if validation.revoked.is_some() {
            return refuse(Problem::new("revocation lists are not read for servers", "remove `crl`"));
        }
        let verified = validation.ca.is_some() || validation.system;
        if !verified && !validation.names.is_empty() {
            return refuse(
                "subjectAltNames prove nothing without a `trusted_ca` that vouches for them".into(),
            );
        }
        let name = match validation.names.as_slice() {
            [] => None,
            names => match exact_dns(names, self.sni.as_deref()) {
                Some(name) => Some(name.to_owned()),
                None => {
                    return refuse(
                        "of servers' names, one exact DNS name can be verified, and it must be the `sni` if there is \
                         one"
                            .into(),
                    );
                }
            },
        };
        let certificate = match &self.certificate_secret {
            Some(reference) => match secrets.get(&reference.name).map(|secret| &secret.content) {
                Some(Content::Certificate(certificate)) => Some(certificate),
                Some(_) => {
                    let text = format!("the secret `{}` is no `tls_certificate`", reference.name);
                    return Err(Diagnostic::new(&reference.place, text));
                }
                None => return Err(reference.missing()),
            },
            None => self.certificate.as_ref(),
        };
        let (ca, ca_place) = validation.ca.unzip();
        Ok(UpstreamTls {
            verify_name: name.is_some(),
            server_name: self.sni.clone().or(name),
            ca,
            ca_place,
            certificate: certificate.map(|certificate| Arc::clone(&certificate.source)),
            verify: verified,
        })
    }
}

/// The DNS name that one of the matchers wants, if it is also the SNI.
fn exact_dns<'a>(names: &'a [quadrille_config::model::AltName], sni: Option<&str>) -> Option<&'a str> {
    let exact =
        names.iter().filter(|name| name.kind == AltNameKind::Dns).filter_map(|name| match &name.text.rule {
            TextRule::Exact(text) => Some(text.as_str()),
            _ => None,
        });
    let mut exact: Vec<_> = exact.collect();
    exact.dedup();
    match exact.as_slice() {
        [only] if sni.is_none_or(|sni| sni.eq_ignore_ascii_case(only)) => Some(only),
        _ => None,
    }
}
