//! Certificates, CAs and revocation lists of a key server, with their expiry times.

use crate::{
    telemetry::{
        expiry::{Expiry, ExpiryKind},
        status::{CertificateStatus, StatusSnapshot},
    },
    tls::pem,
};
use boring::x509::X509;
use quadrille_config::model::{KeyServer, Listen, Source};
use quadrille_engine::Key;
use quadrille_keyless::{ClientTrust, Credentials};
use std::sync::Arc;

/// Certificate, CAs and revocation lists of a key server, as loaded.
#[derive(Default)]
pub(super) struct InUse {
    certificate: Arc<[CertificateStatus]>,
    expiries: Arc<[Expiry]>,
}

impl InUse {
    /// Collects the expiry times. `ca` is the source of the clients' CAs.
    pub(super) fn of(model: &KeyServer, ca: &Source, own: &Credentials, clients: &ClientTrust) -> Self {
        let cas = Expiry::all(ExpiryKind::Ca, ca, pem::expiries_of_cas(&clients.cas.0));
        let lists = model.client_crl.iter().zip(&clients.revoked).flat_map(|((source, _), lists)| {
            Expiry::all(ExpiryKind::RevocationList, source, lists.next_updates())
        });
        let certificate = own.chain.first().map(|leaf| certificate(model, leaf, own));
        Self { certificate: certificate.into_iter().collect(), expiries: cas.chain(lists).collect() }
    }

    /// Returns the expiry times, each with a message for the log.
    pub(super) fn expiries(&self) -> impl Iterator<Item = (i64, String)> {
        let own = self.certificate.iter().map(|status| (status.not_after, status.expired()));
        own.chain(self.expiries.iter().map(|expiry| (expiry.not_after, expiry.to_string())))
    }

    /// Returns the state for the admin endpoint.
    pub(super) fn status(&self) -> StatusSnapshot {
        let (certificates, expiries) = (Arc::clone(&self.certificate), Arc::clone(&self.expiries));
        StatusSnapshot { certificates, expiries, ..StatusSnapshot::default() }
    }
}

fn certificate(model: &KeyServer, leaf: &X509, own: &Credentials) -> CertificateStatus {
    let key = Key::from_pkey(own.key.clone());
    CertificateStatus {
        listener: address(model),
        names: vec![quadrille_pem::common_name(leaf.subject_name())],
        key_type: key.map(|key| key.key_type().to_string()).unwrap_or_default(),
        remote: false,
        not_before: pem::unix_time(leaf.not_before()),
        not_after: pem::unix_time(leaf.not_after()),
        ordered: false,
    }
}

/// Returns the first address with TLS.
fn address(model: &KeyServer) -> String {
    let address = model.listen.iter().find_map(|(listen, _)| match listen {
        Listen::Tcp(address) => Some(address.to_string()),
        Listen::Unix(_) => None,
    });
    address.unwrap_or_default()
}
