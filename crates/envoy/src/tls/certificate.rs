//! Certificates with their keys, and private key providers.

use crate::{
    common::{data_source, duration},
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{CertificateSource, KeySource, Source},
    quote,
};
use std::{sync::Arc, time::Duration};

/// A private key provider, with its key.
struct Provider<'a> {
    key: Option<(Source, Field<'a>)>,
    /// Time that operations wait for a full batch.
    poll_delay: Option<Duration>,
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.TlsCertificate`.
pub(crate) fn certificate(field: &Field<'_>) -> Option<Arc<CertificateSource>> {
    let message = field.message(&schema::TLS_CERTIFICATE)?;
    let chain_field = message.require("certificate_chain");
    let chain = chain_field.as_ref().and_then(data_source);
    let ocsp = match message.get("ocsp_staple") {
        Some(staple) => Some((data_source(&staple)?, staple.place())),
        None => None,
    };
    let own = message.get("private_key");
    let provider = match message.get("private_key_provider") {
        Some(field) => Some(provider(&field, own.is_some())?),
        None => None,
    };
    let (provided, poll_delay) = match provider {
        Some(provider) => (provider.key, provider.poll_delay),
        None => (None, None),
    };
    let (key, key_field) = match (provided, own) {
        (Some(provided), _) => provided,
        (None, Some(own)) => (data_source(&own)?, own),
        (None, None) => return field.fail("`private_key` or `private_key_provider` is missing"),
    };
    let (ocsp, ocsp_place) = ocsp.unzip();
    let source = CertificateSource {
        chain: chain?,
        key: KeySource::Pem(key),
        ocsp,
        poll_delay,
        chain_place: chain_field?.place(),
        key_place: key_field.place(),
        ocsp_place,
        order: None,
        trust_anchor: None,
    };
    Some(Arc::new(source))
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider`. `own_key` is whether the certificate has a
/// key of its own.
fn provider<'a>(field: &Field<'a>, own_key: bool) -> Option<Provider<'a>> {
    let message = field.message(&schema::PRIVATE_KEY_PROVIDER)?;
    let name = message.string("provider_name");
    let Some(config) = message.get("typed_config") else {
        return field.fail(Problem::new("`typed_config` is missing", "it contains the private key"));
    };
    let (kind, config) = config.any()?;
    match kind.rsplit('.').next() {
        Some("CryptoMbPrivateKeyMethodConfig") => {
            let config = config.message(&schema::CRYPTOMB)?;
            let poll_delay = match config.get("poll_delay") {
                Some(delay) => Some(duration(&delay)?),
                None => {
                    return config
                        .field()
                        .fail(Problem::new("`poll_delay` is missing", "CryptoMB needs one, such as `10ms`"));
                }
            };
            Some(Provider { key: Some(provided_key(&config)?), poll_delay })
        }
        Some("QatPrivateKeyMethodConfig") => {
            let config = config.message(&schema::QAT)?;
            Some(Provider { key: Some(provided_key(&config)?), poll_delay: None })
        }
        _ if message.flag("fallback") && own_key => {
            field.warn(
                "provider",
                format!(
                    "provider {} is not supported; `private_key` is used because of `fallback`",
                    quote(&name)
                ),
            );
            Some(Provider { key: None, poll_delay: None })
        }
        _ => field.fail(Problem::new(
            format!("refused: provider {} ({kind}) is not supported", quote(&name)),
            "use `cryptomb` or `qat`, or set a `private_key` and `fallback: true`",
        )),
    }
}

fn provided_key<'a>(config: &Message<'a>) -> Option<(Source, Field<'a>)> {
    let key = config.require("private_key")?;
    Some((data_source(&key)?, key))
}
