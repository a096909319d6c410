//! TLS-ALPN-01 challenges (RFC 8737): handshakes by which a certificate authority validates a name.

use super::{
    alert::{Alert, send_alert},
    key_method::EngineKey,
    selection::Selection,
};
use crate::{
    admission::Cost,
    tls::{
        certificate::files::PrivateKey,
        contained,
        handshake_state::HandshakeState,
        key::remote_key::Remote,
        resumption::sessions::{self, ResumptionSettings},
        server_name,
    },
};
use boring::{
    error::ErrorStack,
    ssl::{AlpnError, ClientHello, ExtensionType, NameType, SelectCertError, SslContext, SslMethod, SslRef},
};
use quadrille_acme::{Answers, ChallengeKey, TlsAlpnCertificate};
use quadrille_engine::{Engine, KeyType};

/// The only ALPN protocol that a validation client offers.
const PROTOCOL: &[u8] = b"acme-tls/1";
/// Content of its ALPN extension (RFC 7301 section 3.1).
const OFFER: &[u8] = b"\x00\x0b\x0aacme-tls/1";

/// Session-id context of these handshakes, so that no other handshake resumes their sessions.
const SESSION_BINDING: [u8; 32] = *b"a name is validated, none served";

/// Selects the challenge certificate for a validation client; returns an error if there is no challenge for the name,
/// and `None` for other clients.
pub(crate) fn select(
    answers: &Answers,
    engine: &Engine,
    settings: ResumptionSettings,
    hello: &mut ClientHello<'_>,
) -> Option<Result<Selection, SelectCertError>> {
    let offer = hello.get_extension(ExtensionType::APPLICATION_LAYER_PROTOCOL_NEGOTIATION);
    if offer != Some(OFFER) {
        return None;
    }
    let sni = hello.servername(NameType::HOST_NAME).map(server_name::normalized);
    Some(answer(answers, engine, settings, hello, sni))
}

/// Returns whether the handshake was a validation. Its connection must not be used further (RFC 8737 section 3): the
/// client has not sent a certificate, even where one is required.
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
            send_alert(hello.ssl(), Alert::InternalError);
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
    // The first context's callbacks remain, and look up their state in this one: without it they panic, and the
    // process aborts.
    sessions::install(&mut builder, settings)?;
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
