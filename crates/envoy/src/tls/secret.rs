//! Named secrets: certificates, validation contexts, session ticket keys.

use super::{
    certificate::certificate,
    validation::{Validation, validation},
};
use crate::{
    common::data_source,
    config_source::{ConfigSource, config_source},
    reader::{Field, ReadMessage},
    schema,
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{CertificateSource, Place, Source},
};
use std::sync::Arc;

/// A named secret.
#[derive(Clone, Debug)]
pub struct Secret {
    pub(crate) content: Content,
}

/// Contents of a secret.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Certificate(Arc<CertificateSource>),
    Validation(Validation),
    TicketKeys(Vec<Source>, Place),
}

/// Name of a secret, and its source.
#[derive(Clone, Debug)]
pub struct SecretReference {
    /// Name of the secret.
    pub name: String,
    /// Source; `None` for a static secret.
    pub source: Option<ConfigSource>,
    /// Place of the reference.
    pub(crate) place: Place,
}

impl SecretReference {
    /// Returns the error for a missing secret.
    pub(crate) fn missing(&self) -> Diagnostic {
        Diagnostic::new(&self.place, format!("there is no secret `{}`", self.name))
    }
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.Secret`, with its name.
pub(crate) fn secret(field: &Field<'_>) -> Option<(String, Secret)> {
    let message = field.message(&schema::SECRET)?;
    let name = message.require("name").and_then(|name| name.text())?.to_owned();
    let content = match message.one_of(&["tls_certificate", "validation_context", "session_ticket_keys"]) {
        Some(("tls_certificate", inner)) => Content::Certificate(certificate(&inner)?),
        Some(("validation_context", inner)) => Content::Validation(validation(&inner)?),
        Some((_, inner)) => Content::TicketKeys(ticket_keys(&inner)?, inner.place()),
        None => {
            return field.fail(Problem::new(
                "contains no supported secret",
                "write `tls_certificate`, `validation_context` or `session_ticket_keys`",
            ));
        }
    };
    Some((name, Secret { content }))
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.TlsSessionTicketKeys`.
pub(crate) fn ticket_keys(field: &Field<'_>) -> Option<Vec<Source>> {
    let message = field.message(&schema::TICKET_KEYS)?;
    let keys: Vec<_> = message.list("keys").iter().map(data_source).collect::<Option<_>>()?;
    if keys.is_empty() { field.fail("`keys` is missing") } else { Some(keys) }
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig`.
pub(crate) fn secret_reference(field: &Field<'_>) -> Option<SecretReference> {
    let message = field.message(&schema::SDS_SECRET)?;
    let name = message.require("name")?.text()?.to_owned();
    let source = match message.get("sds_config") {
        Some(source) => Some(config_source(&source)?),
        None => None,
    };
    Some(SecretReference { name, source, place: field.place() })
}
