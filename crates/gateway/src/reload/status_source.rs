//! State that is served, for telemetry.

use crate::{
    telemetry::expiry::Expiry,
    telemetry::status::{CertificateStatus, ServerStatus, StapleStatus, StatusSnapshot, UpstreamStatus},
    tls::certificate::files::{Certificate, PrivateKey},
    upstream::{Upstream, Upstreams},
};
use quadrille_config::model::Listener;
use quadrille_ocsp::{Staple, State, unix_now};
use std::{sync::Arc, time::Instant};

/// A certificate on a listener.
pub(super) struct ServedCertificate {
    pub(super) certificate: Arc<Certificate>,
    /// OCSP response that is fetched and stapled to the certificate.
    pub(super) staple: Option<Arc<Staple>>,
    /// Whether the certificate is ordered by ACME.
    pub(super) ordered: bool,
}

impl ServedCertificate {
    /// Returns whether clients reject the certificate, because it requires a staple and has none.
    fn lacks_staple(&self) -> bool {
        self.certificate.must_be_stapled && self.certificate.ocsp.is_none() && self.staple.is_none()
    }
}

/// A certificate with an OCSP response that is stapled, or should be.
struct ServedStaple {
    /// Index in [`Served::certificates`].
    index: usize,
    required: bool,
    staple: Option<Arc<Staple>>,
}

/// State that is served: certificates as loaded, and upstreams with their current state.
#[derive(Default)]
pub(crate) struct Served {
    certificates: Arc<[CertificateStatus]>,
    staples: Vec<ServedStaple>,
    awaited: Arc<[String]>,
    upstreams: Vec<Arc<Upstream>>,
    expiries: Arc<[Expiry]>,
}

impl Served {
    /// Collects the certificates of each listener, those not yet issued, and all upstreams.
    pub(super) fn new(
        listeners: &[(&Listener, Vec<ServedCertificate>)],
        awaited: Arc<[String]>,
        upstreams: &Upstreams,
        expiries: Arc<[Expiry]>,
    ) -> Self {
        let certificates = listeners.iter().flat_map(|(listener, certificates)| {
            certificates.iter().map(|ServedCertificate { certificate, ordered, .. }| CertificateStatus {
                listener: listener.address.to_string(),
                names: certificate.names.clone(),
                key_type: certificate.key.key_type().to_string(),
                remote: matches!(certificate.key, PrivateKey::Remote(_)),
                not_before: certificate.not_before,
                not_after: certificate.not_after,
                ordered: *ordered,
            })
        });
        let all = listeners.iter().flat_map(|(_, certificates)| certificates);
        let staples = all.enumerate().filter(|(_, served)| served.staple.is_some() || served.lacks_staple());
        let staples = staples.map(|(index, served)| ServedStaple {
            index,
            required: served.certificate.must_be_stapled,
            staple: served.staple.clone(),
        });
        Self {
            certificates: certificates.collect(),
            staples: staples.collect(),
            awaited,
            upstreams: upstreams.values().cloned().collect(),
            expiries,
        }
    }

    /// Returns the expiry times of certificates, CAs and revocation lists, each with a message for the log.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (i64, String)> {
        let own = self.certificates.iter().map(|status| (status.not_after, status.expired()));
        own.chain(self.expiries.iter().map(|expiry| (expiry.not_after, expiry.to_string())))
    }

    /// Takes the endpoint at an address of an upstream out of service, or back into it. Returns whether there is such an
    /// endpoint.
    pub(crate) fn drain(&self, upstream: &str, address: &str, draining: bool) -> bool {
        let upstream = self.upstreams.iter().find(|known| known.name() == upstream);
        upstream.is_some_and(|upstream| upstream.drain(address, draining))
    }

    /// Returns the current status.
    pub(crate) fn status(&self) -> StatusSnapshot {
        let upstreams = self.upstreams.iter().map(|upstream| {
            let counts = upstream.counts_active();
            let servers = upstream.states().into_iter().map(|(endpoint, state)| {
                let ejected = state.outcomes.is_out(Instant::now);
                ServerStatus {
                    address: endpoint.address.to_string(),
                    host: endpoint.host.to_string(),
                    healthy: state.is_healthy() && !ejected,
                    ejected,
                    draining: state.is_draining(),
                    priority: endpoint.priority,
                    active: counts.then(|| state.active()),
                }
            });
            UpstreamStatus {
                name: upstream.name().to_owned(),
                health_checks: upstream.model().health.is_some(),
                outlier_detection: upstream.model().outlier_detection.is_some(),
                waiting: upstream.waiting(),
                counts: upstream.statistics(),
                servers: servers.collect(),
            }
        });
        let (certificates, awaited) = (Arc::clone(&self.certificates), Arc::clone(&self.awaited));
        let (staples, expiries) = (self.staples(), Arc::clone(&self.expiries));
        StatusSnapshot { certificates, staples, awaited, upstreams: upstreams.collect(), expiries }
    }

    fn staples(&self) -> Vec<StapleStatus> {
        let now = unix_now();
        let status = |ServedStaple { index, required, staple }: &ServedStaple| StapleStatus {
            certificate: *index,
            required: *required,
            state: staple.as_ref().map_or(State::Missing, |staple| staple.state(now)),
        };
        self.staples.iter().map(status).collect()
    }
}
