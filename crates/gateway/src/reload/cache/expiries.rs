//! Expiry times of the certificate revocation lists, CA certificates and OCSP responses of a snapshot.

use super::{ArtifactBuilder, keep};
use crate::{
    telemetry::expiry::{Expiry, ExpiryKind},
    tls::{certificate::files::Certificate, pem},
};
use boring::x509::X509;
use quadrille_config::model::{CertificateSource, ClientCheck, Gateway, Keyless, KeylessTls, Place, Source};
use std::{convert::Infallible, sync::Arc};

impl ArtifactBuilder<'_> {
    /// Notes the lists and CAs that verify clients. They have been read before, so that errors are known.
    pub(crate) fn note_client_check(&mut self, check: &ClientCheck) {
        if let Some((source, place)) = &check.ca {
            self.note_ca_source(source, place);
        }
        if let Some((source, place)) = &check.revoked {
            let lists = || pem::read_crl(source, place).map(|lists| lists.next_updates());
            self.note(ExpiryKind::RevocationList, source, || lists().unwrap_or_default());
        }
    }

    /// Notes the CAs of certificate authorities' servers and of Redis. Files that cannot be read are reported when
    /// they are used.
    pub(crate) fn note_named_cas(&mut self, model: &Gateway) {
        let on_demand = model.acme.iter().filter_map(|acme| acme.on_demand.as_ref()?.ca_file.as_ref());
        let acme = model.acme.iter().filter_map(|acme| acme.ca_file.as_ref());
        for (file, place) in acme.chain(on_demand).chain(&model.resumption.redis_ca) {
            self.note_ca_source(&Source::File(file.clone()), place);
        }
    }

    /// Notes the CAs of key servers.
    pub(super) fn note_key_servers(&mut self, settings: &Keyless) {
        if let Some(KeylessTls { ca: (source, place), .. }) = &settings.tls {
            self.note_ca_source(source, place);
        }
    }

    /// Notes the response of a certificate's own file.
    pub(super) fn note_ocsp_file(&mut self, source: &CertificateSource, certificate: &Certificate) {
        if let (Some(source), Some(response)) = (&source.ocsp, &certificate.ocsp) {
            let expiry = quadrille_ocsp::expiry(response).ok().flatten();
            let expiry = expiry.map(|at| (certificate.names.join(", "), at));
            self.expiries.extend(Expiry::all(ExpiryKind::OcspResponse, source, expiry));
        }
    }

    /// Notes the CAs of a source.
    fn note_ca_source(&mut self, source: &Source, place: &Place) {
        let cas = || pem::read_chain(source, place).map(|cas| pem::expiries_of_cas(&cas));
        self.note(ExpiryKind::Ca, source, || cas().unwrap_or_default());
    }

    /// Notes the CAs that verify servers.
    pub(super) fn note_cas(&mut self, source: &Source, cas: &[X509]) {
        self.note(ExpiryKind::Ca, source, || pem::expiries_of_cas(cas));
    }

    fn note(&mut self, kind: ExpiryKind, source: &Source, read: impl FnOnce() -> Vec<(String, i64)>) {
        let key = (kind, self.content(source));
        let make = || Ok::<_, Infallible>(Arc::from(read()));
        let Ok(found) = keep(&mut self.now.expiries, &self.before.expiries, key, make);
        self.expiries.extend(Expiry::all(kind, source, found.iter().cloned()));
    }
}
