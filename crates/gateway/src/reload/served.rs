//! What is served, as telemetry asks for it.

use crate::{
    telemetry::status::{CertificateStatus, ServerStatus, StatusSnapshot, UpstreamStatus},
    tls::certificate::{Certificate, PrivateKey},
    upstream::{Upstream, Upstreams},
};
use quadrille_config::model::Listener;
use std::sync::Arc;

/// Certificates, and whether each is ordered.
pub(super) type ServedCertificates = Vec<(Arc<Certificate>, bool)>;

/// What is served: certificates as they were read, upstreams as they are when they are asked.
#[derive(Default)]
pub(crate) struct Served {
    certificates: Arc<[CertificateStatus]>,
    awaited: Arc<[String]>,
    upstreams: Vec<Arc<Upstream>>,
}

impl Served {
    /// The certificates of each listener with whether they are ordered, those that are not there yet, and all upstreams.
    pub(super) fn new(
        listeners: &[(&Listener, ServedCertificates)],
        awaited: Arc<[String]>,
        upstreams: &Upstreams,
    ) -> Self {
        let certificates = listeners.iter().flat_map(|(listener, certificates)| {
            certificates.iter().map(|(certificate, ordered)| CertificateStatus {
                listener: listener.address.to_string(),
                names: certificate.names.clone(),
                key_type: certificate.key.key_type().to_string(),
                remote: matches!(certificate.key, PrivateKey::Remote(_)),
                not_before: certificate.not_before,
                not_after: certificate.not_after,
                ordered: *ordered,
            })
        });
        Self {
            certificates: certificates.collect(),
            awaited,
            upstreams: upstreams.values().cloned().collect(),
        }
    }

    /// As it is now.
    pub(crate) fn status(&self) -> StatusSnapshot {
        let upstreams = self.upstreams.iter().map(|upstream| {
            let servers = upstream.servers().into_iter().map(|(server, healthy)| ServerStatus {
                address: server.address.to_string(),
                host: server.host.to_string(),
                healthy,
            });
            UpstreamStatus {
                name: upstream.name().to_owned(),
                health_checks: upstream.model().health.is_some(),
                servers: servers.collect(),
            }
        });
        let (certificates, awaited) = (Arc::clone(&self.certificates), Arc::clone(&self.awaited));
        StatusSnapshot { certificates, awaited, upstreams: upstreams.collect() }
    }
}
