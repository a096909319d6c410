//! What is decided when the ClientHello has been read: whether the handshake goes on, and with which certificate.

use super::{
    certificate_selection::{CertificateSelector, Selected},
    client_capabilities::ClientCapabilities,
    handshake_state::{HandshakeState, ResumptionState},
    key_method::alert_internal_error,
    resumption,
};
use crate::admission::Cost;
use boring::ssl::{ClientHello, NameType, SelectCertError, SslContext};

/// A certificate's context for one client.
pub(super) struct Selection {
    context: SslContext,
    session_binding: [u8; 32],
    sni: Option<String>,
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
        let selected = certificates.select(sni.as_deref(), capabilities).ok_or(SelectCertError::ERROR)?;
        admit(hello, &selected)?;
        let (context, session_binding) = (selected.entry.context.clone(), selected.entry.session_binding);
        Ok(Self { context, session_binding, sni })
    }

    /// Goes on with this certificate.
    pub(super) fn apply(&self, hello: &mut ClientHello<'_>) -> Result<(), SelectCertError> {
        ResumptionState::note(hello);
        let ssl = hello.ssl_mut();
        ssl.set_ssl_context(&self.context).map_err(|_| SelectCertError::ERROR)?;
        // On the connection, behind the context: its certificate brings its own.
        resumption::bind(ssl, &self.session_binding, self.sni.as_deref()).map_err(|_| SelectCertError::ERROR)
    }
}

/// Refuses a handshake that would be too late, or that others come before. The client is told: TLS knows no better
/// alert for it.
fn admit(hello: &mut ClientHello<'_>, selected: &Selected<'_>) -> Result<(), SelectCertError> {
    let Some(visit) = HandshakeState::visit(hello.ssl()) else { return Ok(()) };
    let cost = |thoroughly| match ResumptionState::will_resume(hello, thoroughly) {
        true => Cost::Resumed,
        false => Cost::Full { key_type: selected.entry.key_type, queued: selected.entry.queued },
    };
    visit.arrive(selected.name, cost).map_err(|_| {
        alert_internal_error(hello.ssl());
        SelectCertError::ERROR
    })
}
