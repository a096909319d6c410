//! Upstream TLS.

use super::{
    certificate::certificate,
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
    model::{
        AltName, AltNameKind, CertificateSource, Place, TextRule, TlsParameters, TlsPolicy, UpstreamAlpn,
        UpstreamTls,
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// `envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`, with unresolved secrets.
#[derive(Clone, Debug)]
pub struct ClusterTls {
    /// SNI.
    pub sni: Option<String>,
    validation: Option<Validation>,
    validation_secret: Option<SecretReference>,
    certificate: Option<Arc<CertificateSource>>,
    certificate_secret: Option<SecretReference>,
    alpn: UpstreamAlpn,
    parameters: TlsParameters,
    place: Place,
}

/// Reads the TLS settings of a cluster's `transport_socket`.
pub(crate) fn upstream(field: &Field<'_>) -> Option<ClusterTls> {
    let message = field.message(&schema::UPSTREAM_TLS)?;
    let mut tls = ClusterTls {
        sni: message.get("sni").and_then(|sni| sni.text()).filter(|sni| !sni.is_empty()).map(str::to_owned),
        validation: None,
        validation_secret: None,
        certificate: None,
        certificate_secret: None,
        alpn: UpstreamAlpn::Http,
        parameters: TlsParameters::default(),
        place: field.place(),
    };
    let Some(common_field) = message.get("common_tls_context") else { return Some(tls) };
    let common = common_field.message(&schema::COMMON_TLS)?;
    (tls.validation, tls.validation_secret) = validations(&common)?;
    if let Some(parameters_field) = common.get("tls_params") {
        let mut policy = TlsPolicy { groups: tls.parameters.groups, ..TlsPolicy::default() };
        parameters(&parameters_field, &mut policy)?;
        tls.parameters = policy.into();
    }
    // The upstream protocol is set by the cluster's HTTP options.
    if common.list("alpn_protocols").iter().any(|protocol| protocol.text() == Some("istio")) {
        tls.alpn = UpstreamAlpn::Istio;
    }
    (tls.certificate, tls.certificate_secret) = client_certificate(&common)?;
    Some(tls)
}

/// Reads the client certificate, inline or in a secret.
fn client_certificate(
    common: &Message<'_>,
) -> Option<(Option<Arc<CertificateSource>>, Option<SecretReference>)> {
    let here = common.list("tls_certificates");
    let named = common.list("tls_certificate_sds_secret_configs");
    if let Some(second) = here.iter().chain(&named).nth(1) {
        return second.fail(Problem::new("only one client certificate is supported", "remove the others"));
    }
    let here = here.first().map(|field| certificate(field));
    let named = named.first().map(|field| secret_reference(field));
    Some((
        here.map_or(Some(None), |here| here.map(Some))?,
        named.map_or(Some(None), |named| named.map(Some))?,
    ))
}

impl ClusterTls {
    /// Returns the secrets that it names.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretReference> {
        self.validation_secret.iter().chain(&self.certificate_secret)
    }

    /// Converts to the model for the cluster of a control plane, whose secrets are inline.
    ///
    /// # Errors
    /// If a secret is referenced by name, or the validation is not supported.
    pub fn for_control_plane(&self) -> Result<UpstreamTls, Diagnostic> {
        let named = self.validation_secret.as_ref().or(self.certificate_secret.as_ref());
        if let Some(reference) = named {
            let problem = Problem::new(
                "refused: a control plane's secrets are needed before SDS delivers any",
                "write the certificate or the `trusted_ca` inline",
            );
            return Err(Diagnostic::new(&reference.place, problem));
        }
        self.resolve(&BTreeMap::new(), false)
    }

    /// Converts to the model; with `sends_host`, the SNI is the host of each request.
    ///
    /// # Errors
    /// If a secret is missing, or the validation is not supported.
    pub(crate) fn resolve(
        &self,
        secrets: &BTreeMap<String, Arc<Secret>>,
        sends_host: bool,
    ) -> Result<UpstreamTls, Diagnostic> {
        let mut validation = self.validation.clone().unwrap_or_default();
        if let Some(reference) = &self.validation_secret {
            validation = match secrets.get(&reference.name).map(|secret| &secret.content) {
                Some(Content::Validation(secret)) => validation.merged(secret.clone()),
                Some(_) => {
                    let text = format!("the secret `{}` is not a `validation_context`", reference.name);
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
                "hashes of upstream certificates are not supported",
                "use a `trusted_ca`",
            ));
        }
        if validation.revoked.is_some() {
            return refuse(Problem::new("revocation lists are not supported for upstreams", "remove `crl`"));
        }
        let verified = validation.ca.is_some() || validation.system;
        if !verified && !validation.names.is_empty() {
            return refuse(
                "subjectAltNames prove nothing without a `trusted_ca` that vouches for them".into(),
            );
        }
        // BoringSSL verifies the name that is sent as SNI; the others are matched with the subjectAltNames.
        let sent = exact_dns(&validation.names, self.sni.as_deref()).filter(|_| !sends_host);
        let name = sent.map(str::to_owned);
        let names = if name.is_some() { Vec::new() } else { validation.names };
        let certificate = match &self.certificate_secret {
            Some(reference) => match secrets.get(&reference.name).map(|secret| &secret.content) {
                Some(Content::Certificate(certificate)) => Some(certificate),
                Some(_) => {
                    let text = format!("the secret `{}` is not a `tls_certificate`", reference.name);
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
            certificate: certificate.cloned(),
            verify: verified,
            names,
            alpn: self.alpn,
            parameters: self.parameters.clone(),
        })
    }
}

/// Returns the DNS name if it is the only accepted name, and equals the SNI if there is one.
fn exact_dns<'a>(names: &'a [AltName], sni: Option<&str>) -> Option<&'a str> {
    let mut wanted = names.iter().map(|name| match (name.kind, &name.text.rule) {
        (AltNameKind::Dns, TextRule::Exact(text)) => Some(text.as_str()),
        _ => None,
    });
    let first = wanted.next()??;
    let only = wanted.all(|other| other == Some(first));
    (only && sni.is_none_or(|sni| sni.eq_ignore_ascii_case(first))).then_some(first)
}
