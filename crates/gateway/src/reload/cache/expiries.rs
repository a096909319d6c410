//! Expiry times of the certificate revocation lists and CA certificates of a snapshot.

use super::{ArtifactBuilder, keep};
use crate::{
    telemetry::expiry::{Expiry, ExpiryKind},
    tls::pem,
};
use boring::x509::X509;
use quadrille_config::model::{ClientCheck, Source};
use std::{convert::Infallible, sync::Arc};

impl ArtifactBuilder<'_> {
    /// Notes the lists and CAs that verify clients. They have been read before, so that errors are known.
    pub(crate) fn note_client_check(&mut self, check: &ClientCheck) {
        if let Some((source, place)) = &check.ca {
            let cas = || pem::read_chain(source, place).map(|cas| pem::expiries_of_cas(&cas));
            self.note(ExpiryKind::Ca, source, || cas().unwrap_or_default());
        }
        if let Some((source, place)) = &check.revoked {
            let lists = || pem::read_crl(source, place).map(|lists| lists.next_updates());
            self.note(ExpiryKind::RevocationList, source, || lists().unwrap_or_default());
        }
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
