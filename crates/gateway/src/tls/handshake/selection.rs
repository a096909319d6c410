//! Decisions made when the ClientHello has been read: whether the handshake continues, and with which certificate.

use super::{
    alert::{Alert, send_alert},
    credential,
};
use crate::{
    admission::Cost,
    tls::{
        certificate::{
            client_capabilities::ClientCapabilities,
            files::Certificate,
            selection::{CertificateSelector, Selected},
            trust_anchor::RequestedAnchors,
        },
        handshake_state::{HandshakeState, ResumptionState},
        resumption::sessions,
        server_name,
    },
};
use boring::{
    error::ErrorStack,
    ssl::{ClientHello, ExtensionType, NameType, SelectCertError, SslContext, SslRef, SslVerifyMode},
};
use quadrille_ocsp::{Staple, unix_now};
use std::sync::Arc;

/// A certificate's context selected for a client.
pub(crate) struct Selection {
    context: SslContext,
    session_binding: [u8; 32],
    sni: Option<String>,
    validation: bool,
    /// OCSP response to staple, if the client requests one.
    staple: Option<Arc<Staple>>,
    /// The certificate, if it is for clients that request its trust anchor.
    anchored: Option<Arc<Certificate>>,
    /// Trust anchors to announce, each with a length of one byte, if the client supports that.
    available_anchors: Vec<u8>,
}

impl Selection {
    /// Selects the certificate, unless it is missing or the handshake is rejected. Up to here, only the ClientHello
    /// has been parsed.
    pub(crate) fn new(
        certificates: &CertificateSelector,
        hello: &mut ClientHello<'_>,
    ) -> Result<Self, SelectCertError> {
        let capabilities = ClientCapabilities::read(hello);
        let sni = hello.servername(NameType::HOST_NAME).map(server_name::normalized);
        let requested = RequestedAnchors::read(hello);
        let selected = certificates.select(sni.as_deref(), capabilities, requested);
        let available_anchors = match requested.is_sent() {
            true => certificates.available_anchors(sni.as_deref(), capabilities),
            false => Vec::new(),
        };
        let selected = selected.ok_or_else(|| {
            send_alert(hello.ssl(), Alert::UnrecognizedName);
            SelectCertError::ERROR
        })?;
        admit(hello, &selected, sni.as_deref())?;
        let (context, session_binding) = (selected.entry.context.clone(), selected.entry.session_binding);
        let is_asked = hello.get_extension(ExtensionType::STATUS_REQUEST).is_some();
        let staple = selected.entry.staple.clone().filter(|_| is_asked);
        let is_negotiated = selected.entry.negotiated_anchor().is_some();
        let anchored = selected.entry.anchored.clone().filter(|_| is_negotiated);
        Ok(Self { context, session_binding, sni, validation: false, staple, anchored, available_anchors })
    }

    /// Selects a certificate that validates a name.
    pub(crate) fn of_validation(context: SslContext, session_binding: [u8; 32], sni: Option<String>) -> Self {
        let (staple, anchored, available_anchors) = (None, None, Vec::new());
        Self { context, session_binding, sni, validation: true, staple, anchored, available_anchors }
    }

    /// Continues with this certificate.
    pub(crate) fn apply(&self, hello: &mut ClientHello<'_>) -> Result<(), SelectCertError> {
        ResumptionState::note(hello);
        let ssl = hello.ssl_mut();
        ssl.set_ssl_context(&self.context).map_err(|_| SelectCertError::ERROR)?;
        if self.validation {
            // The certificate authority has no client certificate.
            ssl.set_verify(SslVerifyMode::NONE);
        }
        if !self.available_anchors.is_empty() {
            credential::announce(ssl, &self.available_anchors).map_err(|_| SelectCertError::ERROR)?;
        }
        if let Some(staple) = &self.staple {
            let stapled = staple.with_response(unix_now(), |response| self.set_response(ssl, response));
            stapled.transpose().map_err(|_| SelectCertError::ERROR)?;
        }
        // Set on the connection after switching contexts: the new context's certificate brings its own.
        sessions::bind(ssl, &self.session_binding, self.sni.as_deref()).map_err(|_| SelectCertError::ERROR)
    }
}

impl Selection {
    /// Sets the OCSP response to staple.
    fn set_response(&self, ssl: &mut SslRef, response: &[u8]) -> Result<(), ErrorStack> {
        match self.anchored.as_ref().and_then(|one| Some((one, one.negotiated_anchor()?))) {
            Some((certificate, anchor)) => credential::staple(ssl, certificate, anchor, response),
            None => ssl.set_ocsp_status(response),
        }
    }
}

/// Rejects a handshake that would be too late, or that has to yield to others. The client receives internal_error;
/// TLS has no better alert for this.
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
        send_alert(hello.ssl(), Alert::InternalError);
        SelectCertError::ERROR
    })
}
