//! Handshakes by which a certificate authority validates a name (TLS-ALPN-01, RFC 8737).

use super::{
    certificate::PrivateKey,
    contained,
    handshake_state::HandshakeState,
    key_method::{EngineKey, alert_internal_error},
    remote_key::Remote,
    resumption::{self, ResumptionSettings},
    selection::{Alert, Selection, send_alert},
};
use crate::admission::Cost;
use boring::{
    error::ErrorStack,
    ssl::{AlpnError, ClientHello, ExtensionType, NameType, SelectCertError, SslContext, SslMethod, SslRef},
};
use quadrille_acme::{Answers, ChallengeKey, TlsAlpnCertificate};
use quadrille_engine::{Engine, KeyType};

/// The only protocol that such a client offers.
const PROTOCOL: &[u8] = b"acme-tls/1";
/// As it stands in the extension (RFC 7301 section 3.1).
const OFFER: &[u8] = b"\x00\x0b\x0aacme-tls/1";

/// What sessions of such handshakes are bound to: no other handshake resumes them.
const SESSION_BINDING: [u8; 32] = *b"a name is validated, none served";

/// The certificate for this client, if it validates a name; an error if it does, and nobody has asked for that.
pub(super) fn select(
    answers: &Answers,
    engine: &Engine,
    settings: ResumptionSettings,
    hello: &mut ClientHello<'_>,
) -> Option<Result<Selection, SelectCertError>> {
    let offer = hello.get_extension(ExtensionType::APPLICATION_LAYER_PROTOCOL_NEGOTIATION);
    if offer != Some(OFFER) {
        return None;
    }
    let sni = hello.servername(NameType::HOST_NAME).map(str::to_ascii_lowercase);
    Some(answer(answers, engine, settings, hello, sni))
}

/// Whether this was such a handshake. Nothing more may come of the connection (RFC 8737 section 3): its client has shown
/// no certificate, even where others must.
pub(crate) fn is_validation(ssl: &SslRef) -> bool {
    ssl.selected_alpn_protocol() == Some(PROTOCOL)
}

fn answer(
    answers: &Answers,
    engine: &Engine,
    settings: ResumptionSettings,
    hello: &mut ClientHello<'_>,
    sni: Option<String>,
) -> Result<Selection, SelectCertError> {
    let Some(certificate) = sni.as_deref().and_then(|name| answers.tls_alpn(name)) else {
        send_alert(hello.ssl(), Alert::UnrecognizedName);
        return Err(SelectCertError::ERROR);
    };
    if let Some(visit) = HandshakeState::visit(hello.ssl()) {
        let cost = |_| Cost::Full { key_type: KeyType::EcdsaP256, queued: false };
        visit.arrive("", cost).map_err(|_| {
            alert_internal_error(hello.ssl());
            SelectCertError::ERROR
        })?;
    }
    let context = context(&certificate, engine, settings).map_err(|_| SelectCertError::ERROR)?;
    Ok(Selection::of_validation(context, SESSION_BINDING, sni))
}

fn context(
    shown: &TlsAlpnCertificate,
    engine: &Engine,
    settings: ResumptionSettings,
) -> Result<SslContext, ErrorStack> {
    let mut builder = SslContext::builder(SslMethod::tls())?;
    // The first context's callbacks stay, and look here for what they call: without it they panic, and the process aborts.
    resumption::install(&mut builder, settings)?;
    builder.set_certificate(&shown.certificate)?;
    match &shown.key {
        ChallengeKey::Local(key) => builder.set_private_key(key)?,
        ChallengeKey::Remote(key, client) => {
            let key = PrivateKey::Remote(Box::new(Remote::alone(key.clone(), client.clone())));
            builder.set_async_private_key_method(EngineKey { key, engine: engine.clone() });
        }
    }
    builder.set_alpn_select_callback(|_, client| {
        contained(None, || client.windows(PROTOCOL.len()).find(|window| *window == PROTOCOL))
            .ok_or(AlpnError::ALERT_FATAL)
    });
    Ok(builder.build())
}
