//! Verification of clients' certificates: by the handshake, and again when CAs or revocation lists have changed, so that
//! a connection ends with its client's permission to open another one.

use crate::tls::ClientTrust;
use boring::{
    asn1::Asn1Time,
    error::ErrorStack,
    ssl::SslRef,
    stack::Stack,
    x509::{X509, X509Ref, X509StoreContext, store::X509Store},
};
use quadrille_unix_time::unix_now;
use std::time::{Duration, Instant};

/// Verifier of clients' certificates.
pub(super) struct VerifiedClients {
    pub(super) trust: ClientTrust,
    store: X509Store,
}

/// Certificates that a client has presented.
pub(super) struct PresentedCertificates {
    leaf: X509,
    chain: Stack<X509>,
}

impl PresentedCertificates {
    /// Returns `None` if the client has presented no certificate.
    pub(super) fn of(ssl: &SslRef) -> Result<Option<Self>, ErrorStack> {
        let Some(leaf) = ssl.peer_certificate() else { return Ok(None) };
        let mut chain = Stack::new()?;
        for link in ssl.peer_cert_chain().into_iter().flatten() {
            chain.push(link.to_owned())?;
        }
        Ok(Some(Self { leaf, chain }))
    }
}

impl VerifiedClients {
    pub(super) fn new(trust: &ClientTrust) -> Result<Self, ErrorStack> {
        Ok(Self { store: trust.store()?.build(), trust: trust.clone() })
    }

    /// Verifies the certificates of a client; returns when to verify them again, because a certificate of their chain
    /// or a revocation list has expired.
    ///
    /// # Errors
    /// The reason for which they are not accepted.
    pub(super) fn verify(&self, presented: &PresentedCertificates) -> Result<Instant, String> {
        let mut context = X509StoreContext::new().map_err(|error| error.to_string())?;
        let verified = context.init(&self.store, &presented.leaf, &presented.chain, |context| {
            if !context.verify_cert()? {
                return Ok(Err(context.verify_result().err()));
            }
            let all = context.chain().into_iter().flatten().map(valid_for).chain(self.lists_valid_for());
            Ok(Ok(all.min().unwrap_or(Duration::ZERO)))
        });
        match verified.map_err(|error| error.to_string())? {
            Ok(left) => Ok(Instant::now() + left),
            Err(Some(error)) => Err(error.error_string().to_owned()),
            Err(None) => Err("not accepted".to_owned()),
        }
    }

    /// Returns the time until the next revocation list expires. Whether the client needs that list is decided then.
    fn lists_valid_for(&self) -> Option<Duration> {
        let now = unix_now();
        let updates = self.trust.revoked.as_ref()?.next_updates().into_iter().map(|(_, due)| due);
        let next = updates.filter(|due| *due > now).min()?;
        Some(until(next - now))
    }
}

/// Returns the time until a certificate expires.
fn valid_for(certificate: &X509Ref) -> Duration {
    let now = Asn1Time::from_unix(unix_now()).ok();
    let left = now.and_then(|now| now.diff(certificate.not_after()).ok());
    let seconds = left.map_or(0, |left| i64::from(left.days) * 86_400 + i64::from(left.secs));
    until(seconds)
}

/// Returns the time until an end in so many seconds has passed. What ends is valid in the second of its end (RFC 5280
/// section 4.1.2.5).
fn until(seconds: i64) -> Duration {
    /// Sufficient for certificates without an end, and small enough to be added to the clock.
    const LONG: Duration = Duration::from_secs(86_400 * 365);
    let seconds = u64::try_from(seconds.saturating_add(1)).unwrap_or(0);
    Duration::from_secs(seconds).min(LONG)
}
