//! What is decided when the ClientHello has been read: whether the handshake goes on, and with which certificate.

use super::{
    certificate_selection::{CertificateSelector, Selected},
    client_capabilities::ClientCapabilities,
    handshake_state::{HandshakeState, ResumptionState},
    key_method::alert_internal_error,
    resumption,
};
use crate::admission::Cost;
use boring::{
    error::ErrorStack,
    ssl::{ClientHello, ExtensionType, NameType, SelectCertError, SslContext, SslRef, SslVerifyMode},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_ocsp::{Staple, unix_now};
use std::sync::Arc;

/// A certificate's context for one client.
pub(super) struct Selection {
    context: SslContext,
    session_binding: [u8; 32],
    sni: Option<String>,
    validation: bool,
    /// Of a client that asks for one.
    staple: Option<Arc<Staple>>,
}

/// Why a handshake ends, as the client is told (RFC 8446 section 6.2).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alert {
    /// There is no certificate for the name, and nothing that serves it.
    UnrecognizedName = 112,
    /// Nothing that serves the name speaks the client's protocols.
    NoApplicationProtocol = 120,
}

/// Tells the client why the handshake ends. Called in BoringSSL's callbacks only.
pub(super) fn send_alert(ssl: &SslRef, alert: Alert) {
    // SAFETY: the connection is live and in its handshake, where BoringSSL sends alerts itself.
    unsafe { ffi::SSL_send_fatal_alert(ssl.as_ptr(), alert as u8) };
    // Whether it could be sent is of no interest, and must not stay in the thread's error queue.
    drop(ErrorStack::get());
}

impl Selection {
    /// Selects the certificate, unless there is none or the handshake is refused. Nothing has been computed until then
    /// but the look at the ClientHello.
    pub(super) fn new(
        certificates: &CertificateSelector,
        hello: &mut ClientHello<'_>,
    ) -> Result<Self, SelectCertError> {
        let capabilities = ClientCapabilities::read(hello);
        let sni = hello.servername(NameType::HOST_NAME).map(str::to_ascii_lowercase);
        let selected = certificates.select(sni.as_deref(), capabilities);
        let selected = selected.ok_or_else(|| {
            send_alert(hello.ssl(), Alert::UnrecognizedName);
            SelectCertError::ERROR
        })?;
        admit(hello, &selected, sni.as_deref())?;
        let (context, session_binding) = (selected.entry.context.clone(), selected.entry.session_binding);
        let is_asked = hello.get_extension(ExtensionType::STATUS_REQUEST).is_some();
        let staple = selected.entry.staple.clone().filter(|_| is_asked);
        Ok(Self { context, session_binding, sni, validation: false, staple })
    }

    /// With a certificate that validates a name.
    pub(super) fn of_validation(context: SslContext, session_binding: [u8; 32], sni: Option<String>) -> Self {
        Self { context, session_binding, sni, validation: true, staple: None }
    }

    /// Goes on with this certificate.
    pub(super) fn apply(&self, hello: &mut ClientHello<'_>) -> Result<(), SelectCertError> {
        ResumptionState::note(hello);
        let ssl = hello.ssl_mut();
        ssl.set_ssl_context(&self.context).map_err(|_| SelectCertError::ERROR)?;
        if self.validation {
            // The authority has no certificate to show.
            ssl.set_verify(SslVerifyMode::NONE);
        }
        if let Some(staple) = &self.staple {
            let stapled = staple.with_response(unix_now(), |response| ssl.set_ocsp_status(response));
            stapled.transpose().map_err(|_| SelectCertError::ERROR)?;
        }
        // On the connection, behind the context: its certificate brings its own.
        resumption::bind(ssl, &self.session_binding, self.sni.as_deref()).map_err(|_| SelectCertError::ERROR)
    }
}

/// Refuses a handshake that would be too late, or that others come before. The client is told: TLS knows no better
/// alert for it.
fn admit(
    hello: &mut ClientHello<'_>,
    selected: &Selected<'_>,
    sni: Option<&str>,
) -> Result<(), SelectCertError> {
    let Some(visit) = HandshakeState::visit(hello.ssl()) else { return Ok(()) };
    let binding = (&selected.entry.session_binding, sni);
    let cost = |thoroughly| match ResumptionState::will_resume(hello, thoroughly, binding) {
        true => Cost::Resumed,
        false => Cost::Full { key_type: selected.entry.key_type, queued: selected.entry.queued },
    };
    visit.arrive(selected.name, cost).map_err(|_| {
        alert_internal_error(hello.ssl());
        SelectCertError::ERROR
    })
}
