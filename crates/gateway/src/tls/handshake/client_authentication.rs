//! Requirements for client certificates in addition to a chain to a CA: pins, names, and certificate revocation
//! lists.

use crate::tls::{
    certificate::alt_names,
    contained,
    handshake_state::{ClientRejection, HandshakeState},
    pem,
};
use boring::{
    asn1::Asn1Time,
    error::ErrorStack,
    hash::MessageDigest,
    sha::sha256,
    ssl::{SslAlert, SslContextBuilder, SslRef, SslVerifyError, SslVerifyMode},
    x509::{
        X509, X509Ref, X509StoreContext, X509StoreContextRef, X509VerifyError, store::X509StoreBuilder,
        verify::X509VerifyFlags,
    },
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_config::{
    Diagnostic,
    model::{AltName, ClientCheck},
};
use quadrille_pem::RevocationLists;
use quadrille_unix_time::unix_now;
use std::sync::Arc;

/// Verifier of client certificates.
#[derive(Clone)]
pub(crate) struct ClientVerifier {
    /// Trusted CAs. Empty only if there are pins.
    pub(crate) cas: Vec<X509>,
    revoked: Option<Arc<RevocationLists>>,
    leaf: Arc<Leaf>,
}

/// Requirements for the client's leaf certificate.
struct Leaf {
    certificates: Vec<[u8; 32]>,
    public_keys: Vec<[u8; 32]>,
    names: Vec<AltName>,
}

impl ClientVerifier {
    pub(crate) fn new(model: &ClientCheck) -> Result<Self, Diagnostic> {
        let cas = match &model.ca {
            Some((ca, place)) => pem::read_chain(ca, place)?,
            None => Vec::new(),
        };
        let revoked =
            model.revoked.as_ref().map(|(list, place)| pem::read_crl(list, place)).transpose()?.map(Arc::new);
        let leaf = Leaf {
            certificates: model.certificates.clone(),
            public_keys: model.public_keys.clone(),
            names: model.names.clone(),
        };
        Ok(Self { cas, revoked, leaf: Arc::new(leaf) })
    }

    /// Makes a context's connections request and verify a client certificate.
    pub(crate) fn install(
        &self,
        builder: &mut SslContextBuilder,
        mode: SslVerifyMode,
    ) -> Result<(), ErrorStack> {
        let mut store = X509StoreBuilder::new()?;
        for ca in &self.cas {
            store.add_cert(ca)?;
            builder.add_client_ca(ca)?;
        }
        if let Some(revoked) = &self.revoked {
            revoked.add_to(&mut store)?;
        }
        // Every CA of the bundle is a trust anchor, including intermediate CAs.
        store.set_flags(X509VerifyFlags::PARTIAL_CHAIN);
        builder.set_cert_store_builder(store);
        let leaf = Arc::clone(&self.leaf);
        if self.cas.is_empty() {
            // Pins do not require a chain.
            builder.set_custom_verify_callback(mode, move |ssl| leaf.check_pins(ssl));
        } else {
            builder.set_verify_callback(mode, move |valid, context| leaf.check_link(valid, context));
        }
        Ok(())
    }

    /// Installs the verification on a connection that began with another context: switching contexts takes over the
    /// CAs only.
    pub(crate) fn install_on(&self, ssl: &mut SslRef, mode: SslVerifyMode) {
        let leaf = Arc::clone(&self.leaf);
        if self.cas.is_empty() {
            ssl.set_custom_verify_callback(mode, move |ssl| leaf.check_pins(ssl));
        } else {
            ssl.set_verify_callback(mode, move |valid, context| leaf.check_link(valid, context));
        }
    }

    /// Returns whether the client's certificate meets the requirements after the handshake, or there is no
    /// certificate. This does not rely on BoringSSL having called the callbacks during the handshake.
    pub(crate) fn passes(&self, ssl: &SslRef) -> bool {
        self.leaf.asks_nothing()
            || ssl.peer_certificate().is_none_or(|certificate| self.leaf.refusal(&certificate).is_none())
    }

    /// Returns the properties that sessions are bound to.
    pub(crate) fn identity(&self) -> Result<Vec<Vec<u8>>, ErrorStack> {
        let mut identity: Vec<Vec<u8>> = self.cas.iter().map(|ca| ca.to_der()).collect::<Result<_, _>>()?;
        identity.extend(self.revoked.iter().flat_map(|lists| lists.iter().map(|list| sha256(list).to_vec())));
        let Leaf { certificates, public_keys, names } = &*self.leaf;
        for (kind, pins) in [(b'c', certificates), (b'k', public_keys)] {
            identity.extend(pins.iter().map(|pin| [&[kind][..], pin].concat()));
        }
        identity.extend(names.iter().map(|name| format!("{name:?}").into_bytes()));
        Ok(identity)
    }
}

/// Records the reason for the log and the statistics.
fn note(rejection: ClientRejection, ssl: &SslRef) {
    if let Some(handshake) = HandshakeState::attached(ssl) {
        let _ = handshake.client_rejection.set(rejection);
    }
}

/// Returns whether the only error is a missing CRL for an intermediate CA that is a trust anchor: its issuer, which
/// would publish that CRL, is unknown here.
fn is_anchor_without_list(context: &mut X509StoreContextRef) -> bool {
    let top = context.chain().map_or(0, |chain| chain.len().saturating_sub(1));
    let is_anchor = top > 0 && usize::try_from(context.error_depth()) == Ok(top);
    let no_list = context.verify_result() == Err(X509VerifyError::UNABLE_TO_GET_CRL);
    if is_anchor && no_list {
        context.set_error(Ok(()));
    }
    is_anchor && no_list
}

/// Limits the lifetime of the new session to the certificate's, as resumption does not verify it again. The time
/// counts from the handshake that authenticated the client, however often the session is renewed.
fn end_session_with(certificate: &X509Ref, ssl: &SslRef) {
    let now = Asn1Time::from_unix(unix_now()).ok();
    let left = now.and_then(|now| now.diff(certificate.not_after()).ok());
    let left = left.map_or(0, |left| i64::from(left.days) * 86_400 + i64::from(left.secs));
    // SAFETY: the connection is live, and its session is this handshake's own until the handshake is complete.
    // `SSL_SESSION_set_timeout` sets the limit of renewals too (BoringSSL's `auth_timeout`).
    unsafe {
        let session = ffi::SSL_get_session(ssl.as_ptr());
        if !session.is_null() {
            let lifetime = ffi::SSL_SESSION_get_timeout(session);
            let left = u32::try_from(left.max(0)).unwrap_or(u32::MAX);
            ffi::SSL_SESSION_set_timeout(session, lifetime.min(left));
        }
    }
}

impl Leaf {
    /// BoringSSL's custom verify callback, used where no chain is verified.
    fn check_pins(&self, ssl: &mut SslRef) -> Result<(), SslVerifyError> {
        contained(Err(SslVerifyError::Invalid(SslAlert::INTERNAL_ERROR)), || self.verify(ssl))
    }

    /// BoringSSL's verify callback, called for every certificate of a chain and every error.
    fn check_link(&self, valid: bool, context: &mut X509StoreContextRef) -> bool {
        contained(false, || if valid { self.accepts(context) } else { is_anchor_without_list(context) })
    }

    /// Checks a valid certificate of a chain against the requirements.
    fn accepts(&self, context: &X509StoreContextRef) -> bool {
        let ssl = X509StoreContext::ssl_idx().ok().and_then(|index| context.ex_data(index));
        let (Some(certificate), Some(ssl)) = (context.current_cert(), ssl) else { return false };
        end_session_with(certificate, ssl);
        if context.error_depth() != 0 {
            return true;
        }
        let refusal = self.refusal(certificate);
        if let Some(refusal) = refusal {
            note(refusal, ssl);
        }
        refusal.is_none()
    }

    fn asks_nothing(&self) -> bool {
        self.certificates.is_empty() && self.public_keys.is_empty() && self.names.is_empty()
    }

    fn verify(&self, ssl: &SslRef) -> Result<(), SslVerifyError> {
        let certificate = ssl.peer_certificate().ok_or(SslVerifyError::Invalid(SslAlert::BAD_CERTIFICATE))?;
        match self.refusal(&certificate) {
            None => {
                end_session_with(&certificate, ssl);
                Ok(())
            }
            Some(refusal) => {
                note(refusal, ssl);
                Err(SslVerifyError::Invalid(SslAlert::BAD_CERTIFICATE))
            }
        }
    }

    /// Returns the requirement that the certificate does not meet.
    fn refusal(&self, certificate: &X509Ref) -> Option<ClientRejection> {
        let pinned =
            self.certificates.is_empty() && self.public_keys.is_empty() || self.is_pinned(certificate);
        if !pinned {
            return Some(ClientRejection::Pin);
        }
        (!self.names.is_empty() && !alt_names::has_one_of(certificate, &self.names))
            .then_some(ClientRejection::Name)
    }

    fn is_pinned(&self, certificate: &X509Ref) -> bool {
        let whole = || certificate.digest(MessageDigest::sha256());
        let key = || certificate.public_key().and_then(|key| key.public_key_to_der());
        (!self.certificates.is_empty()
            && whole().is_ok_and(|digest| self.certificates.iter().any(|pin| pin[..] == digest[..])))
            || (!self.public_keys.is_empty()
                && key().is_ok_and(|der| self.public_keys.contains(&sha256(&der))))
    }
}
