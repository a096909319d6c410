//! Downstream TLS.

use super::{
    certificate::certificate,
    parameters::parameters,
    secret::{Content, Secret, SecretReference, secret_reference, ticket_keys},
    validation::{Validation, validation},
};
use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{CertificateSource, ClientAuth, OcspStapling, Place, Source, Tls, TlsPolicy},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Session ticket keys, with their place.
type TicketKeys = (Vec<Source>, Place);

/// An inline value, or a reference to a secret.
#[derive(Clone, Debug)]
enum From<T> {
    Here(T),
    Secret(SecretReference),
}

/// `envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext`, with unresolved secrets.
#[derive(Debug)]
pub(crate) struct DownstreamTls {
    policy: TlsPolicy,
    certificates: Vec<From<Arc<CertificateSource>>>,
    validation: Option<Validation>,
    validation_secret: Option<SecretReference>,
    required: bool,
    ticket_keys: Option<From<(Vec<Source>, Place)>>,
    /// Session settings of this context, which are process-wide.
    pub(crate) sessions: Sessions,
    /// Place of the client certificate settings.
    client_auth_place: Place,
    /// Last resolution, with its secrets: an unchanged context must be the same object.
    resolved: Mutex<Option<(Vec<Arc<Secret>>, Resolved)>>,
}

/// Session settings of a context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) no_tickets: bool,
    pub(crate) no_cache: bool,
    pub(crate) lifetime: Option<Duration>,
}

/// A context with its secrets.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) tls: Arc<Tls>,
    pub(crate) ticket_keys: Option<(Vec<Source>, Place)>,
}

/// Reads the TLS settings of a listener's `transport_socket`.
pub(crate) fn downstream(field: &Field<'_>) -> Option<DownstreamTls> {
    let message = field.message(&schema::DOWNSTREAM_TLS)?;
    let common_field = message.require("common_tls_context")?;
    let common = common_field.message(&schema::COMMON_TLS)?;
    // Envoy staples only configured OCSP responses, and does not fetch them.
    let ocsp_stapling = OcspStapling::Off;
    let mut policy = TlsPolicy { alpn: alpn(&common), ocsp_stapling, ..TlsPolicy::default() };
    if let Some(parameters_field) = common.get("tls_params") {
        parameters(&parameters_field, &mut policy)?;
    }
    let here = common.list("tls_certificates").into_iter().map(|item| certificate(&item).map(From::Here));
    let by_name = common.list("tls_certificate_sds_secret_configs").into_iter();
    let by_name = by_name.map(|item| secret_reference(&item).map(From::Secret));
    let certificates: Vec<_> = here.chain(by_name).collect::<Vec<_>>().into_iter().collect::<Option<_>>()?;
    if certificates.is_empty() {
        return common_field
            .fail(Problem::new("there is no certificate", "write `tls_certificates`, or name a secret"));
    }
    let (validation, validation_secret) = validations(&common)?;
    let asks_clients = message
        .get("require_client_certificate")
        .or_else(|| VALIDATIONS.iter().find_map(|kind| common.get(kind)));
    let tls = DownstreamTls {
        policy,
        certificates,
        validation,
        validation_secret,
        required: message.flag("require_client_certificate"),
        ticket_keys: keys_of_tickets(&message)?,
        sessions: sessions(&message)?,
        client_auth_place: asks_clients.as_ref().unwrap_or(field).place(),
        resolved: Mutex::default(),
    };
    // A context without secrets can be validated at once.
    if tls.validation_secret.is_none()
        && let Err(reason) = tls.client_auth(None)
    {
        return asks_clients.as_ref().unwrap_or(field).fail(reason);
    }
    Some(tls)
}

/// ALPN protocol names used by the proxies of an Istio mesh, the most specific first.
const MESH_PROTOCOLS: [&str; 4] = ["istio-h2", "istio-http/1.1", "istio-http/1.0", "istio"];
/// Protocol in which each side first sends its identity.
const PEER_EXCHANGE: &str = "istio-peer-exchange";

impl DownstreamTls {
    /// Negotiates the mesh protocols by which a chain matches clients. Envoy continues with clients that offer no
    /// common protocol; here that is an error (RFC 7301 section 3.2).
    pub(crate) fn speaks_to_mesh(&mut self, accepted: &[String]) {
        let alpn = &mut self.policy.alpn;
        let exchanges = alpn.iter().any(|name| name == PEER_EXCHANGE);
        alpn.retain(|name| name != PEER_EXCHANGE);
        let is_meant =
            |name: &str| accepted.iter().any(|accepted| accepted == name) || exchanges && name == "istio";
        let more: Vec<_> =
            MESH_PROTOCOLS.into_iter().filter(|name| is_meant(name)).map(str::to_owned).collect();
        alpn.extend(more);
    }
}

fn alpn(common: &Message<'_>) -> Vec<String> {
    // One entry may contain several protocols: `h2,http/1.1`.
    let texts = common.list("alpn_protocols");
    let protocols = texts.iter().filter_map(Field::text).flat_map(|text| text.split(','));
    protocols.map(|protocol| protocol.trim().to_owned()).filter(|protocol| !protocol.is_empty()).collect()
}

/// Fields of a context that configure peer validation.
const VALIDATIONS: [&str; 3] =
    ["validation_context", "validation_context_sds_secret_config", "combined_validation_context"];

/// Reads the inline peer validation, and that in a secret.
pub(super) fn validations(common: &Message<'_>) -> Option<(Option<Validation>, Option<SecretReference>)> {
    match common.one_of(&VALIDATIONS) {
        None => Some((None, None)),
        Some(("validation_context", field)) => Some((Some(validation(&field)?), None)),
        Some(("validation_context_sds_secret_config", field)) => {
            Some((None, Some(secret_reference(&field)?)))
        }
        Some((_, field)) => {
            let combined = field.message(&schema::COMBINED_VALIDATION)?;
            let default = validation(&combined.require("default_validation_context")?)?;
            let secret = secret_reference(&combined.require("validation_context_sds_secret_config")?)?;
            Some((Some(default), Some(secret)))
        }
    }
}

fn keys_of_tickets(message: &Message<'_>) -> Option<Option<From<TicketKeys>>> {
    match message.one_of(&["session_ticket_keys", "session_ticket_keys_sds_secret_config"]) {
        Some(("session_ticket_keys", field)) => Some(Some(From::Here((ticket_keys(&field)?, field.place())))),
        Some((_, field)) => Some(Some(From::Secret(secret_reference(&field)?))),
        None => Some(None),
    }
}

fn sessions(message: &Message<'_>) -> Option<Sessions> {
    const STAPLING: &[(&str, u32, ())] = &[("LENIENT_STAPLING", 0, ())];
    if let Some(policy) = message.get("ocsp_staple_policy") {
        policy.parse(enumeration(STAPLING))?;
    }
    let lifetime = match message.get("session_timeout") {
        Some(field) => Some(duration(&field)?),
        None => None,
    };
    Some(Sessions {
        no_tickets: message.flag("disable_stateless_session_resumption"),
        no_cache: message.flag("disable_stateful_session_resumption"),
        lifetime,
    })
}

impl DownstreamTls {
    /// Returns all secrets that it names.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretReference> {
        let certificates = self.certificates.iter().filter_map(From::secret);
        let tickets = self.ticket_keys.iter().filter_map(From::secret);
        certificates.chain(&self.validation_secret).chain(tickets)
    }

    /// Resolves the context's secrets.
    ///
    /// # Errors
    /// If a secret is missing, or has the wrong type.
    pub(crate) fn resolve(&self, secrets: &BTreeMap<String, Arc<Secret>>) -> Result<Resolved, Diagnostic> {
        let wanted = self
            .secrets()
            .map(|reference| secrets.get(&reference.name).cloned().ok_or_else(|| reference.missing()));
        let used = wanted.collect::<Result<Vec<_>, _>>()?;
        let mut cache = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, resolved)) = &*cache
            && before.len() == used.len()
            && before.iter().zip(&used).all(|(before, now)| Arc::ptr_eq(before, now))
        {
            return Ok(resolved.clone());
        }
        let resolved = self.build(secrets)?;
        *cache = Some((used, resolved.clone()));
        Ok(resolved)
    }

    fn build(&self, secrets: &BTreeMap<String, Arc<Secret>>) -> Result<Resolved, Diagnostic> {
        let content =
            |reference: &SecretReference| secrets.get(&reference.name).map(|secret| &secret.content);
        let wrong = |reference: &SecretReference, what: &str| {
            let text = format!("the secret `{}` is not a {what}", reference.name);
            Err(Diagnostic::new(&reference.place, text))
        };
        let mut certificates = Vec::new();
        for from in &self.certificates {
            let certificate = match from {
                From::Here(certificate) => certificate,
                From::Secret(reference) => match content(reference) {
                    Some(Content::Certificate(certificate)) => certificate,
                    _ => return wrong(reference, "`tls_certificate`"),
                },
            };
            certificates.push(Arc::clone(certificate));
        }
        let checked = match &self.validation_secret {
            None => None,
            Some(reference) => match content(reference) {
                Some(Content::Validation(validation)) => Some(validation),
                _ => return wrong(reference, "`validation_context`"),
            },
        };
        let ticket_keys = match &self.ticket_keys {
            None => None,
            Some(From::Here(keys)) => Some(keys.clone()),
            Some(From::Secret(reference)) => match content(reference) {
                Some(Content::TicketKeys(keys, place)) => Some((keys.clone(), place.clone())),
                _ => return wrong(reference, "`session_ticket_keys`"),
            },
        };
        let refused = |problem: Problem| Diagnostic::new(&self.client_auth_place, problem);
        let client_auth = self.client_auth(checked).map_err(refused)?;
        let policy = TlsPolicy { client_auth, ..self.policy.clone() };
        Ok(Resolved { tls: Arc::new(Tls { certificates, policy }), ticket_keys })
    }

    fn client_auth(&self, secret: Option<&Validation>) -> Result<ClientAuth, Problem> {
        let written = self.validation.clone().unwrap_or_default();
        let check = match secret {
            Some(secret) => written.merged(secret.clone()),
            None => written,
        };
        match (check.client_check()?, self.required) {
            (Some(check), true) => Ok(ClientAuth::Required(Box::new(check))),
            (Some(check), false) => Ok(ClientAuth::Optional(Box::new(check))),
            (None, false) => Ok(ClientAuth::Off),
            (None, true) => Err(
                "refused: `require_client_certificate` without a `trusted_ca`, or hashes, would accept every certificate".into(),
            ),
        }
    }
}

impl<T> From<T> {
    fn secret(&self) -> Option<&SecretReference> {
        match self {
            Self::Here(_) => None,
            Self::Secret(reference) => Some(reference),
        }
    }
}
