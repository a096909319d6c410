//! BoringSSL contexts of a filter chain: one that connections start with, and one for each certificate.
//!
//! Pitfalls: a panic in a callback aborts the process; version limits, verify mode and the resumption callbacks
//! remain those of the first context after `set_ssl_context`, while certificate, key method, ALPN, OCSP response,
//! certificate compression and client CAs follow the new one. All contexts of a chain are therefore built by the same
//! function; the context of an ACME validation, which is not, has the resumption callbacks too.

use super::{
    certificate::{
        compression,
        files::Certificate,
        selection::{CertificateSelector, Entry},
    },
    contained,
    handshake::{
        acme_challenge, before_selection, client_authentication::ClientVerifier, credential, early_data,
        key_exchange::KeyExchange, key_method::EngineKey, selection::Selection,
    },
    handshake_state::{HandshakeState, Peer},
    parameters::{group_list, ssl_version},
    resumption::sessions::{self, ResumptionSettings},
    resumption_backend::ResumptionBackend,
};
use crate::admission::Visit;
use boring::{
    error::ErrorStack,
    sha::Sha256,
    ssl::{
        AlpnError, ClientHello, SelectCertError, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode,
        SslOptions, SslRef, SslVerifyMode, select_next_proto,
    },
};
use boring_sys as ffi;
use foreign_types::ForeignType;
use quadrille_acme::{Answers, OnDemand};
use quadrille_config::{
    Diagnostic,
    model::{ClientAuth, Mode, TlsPolicy, Version},
};
use quadrille_engine::Engine;
use quadrille_ocsp::Staple;
use std::sync::Arc;
use tokio::net::TcpStream;

/// TLS configuration of a filter chain, or of several with the same settings.
pub(crate) struct ChainTls {
    base: SslContext,
    certificates: Arc<CertificateSelector>,
    check: Option<ClientVerifier>,
    /// Requirements for clients, for comparison.
    client_authentication: Vec<Vec<u8>>,
    /// TLS policy, for comparison.
    policy: TlsPolicy,
    resumption: Arc<ResumptionBackend>,
    waits_for_compute: bool,
}

/// Certificates of a filter chain and related state.
#[derive(Clone, Copy)]
pub(crate) struct Identities<'a> {
    pub(crate) certificates: &'a [Arc<Certificate>],
    /// Fetched OCSP responses to staple, by certificate.
    pub(crate) staples: &'a [Option<Arc<Staple>>],
    /// Names whose certificates are ordered and not available yet.
    pub(crate) awaited: &'a [String],
    /// Receives names without a certificate, if any are ordered on demand.
    pub(crate) on_demand: Option<&'a Arc<OnDemand>>,
    /// Responses to ACME challenges.
    pub(crate) answers: &'a Arc<Answers>,
}

/// Settings of a context apart from the certificate.
struct Settings<'a> {
    policy: &'a TlsPolicy,
    /// ALPN protocols, most preferred first.
    protocols: &'a [String],
    check: Option<ClientVerifier>,
    resumption_settings: ResumptionSettings,
    early_data: bool,
}

impl ChainTls {
    /// Builds all contexts.
    pub(crate) fn new(
        policy: &TlsPolicy,
        mode: Mode,
        resumption: &Arc<ResumptionBackend>,
        identities: Identities<'_>,
        engine: &Engine,
    ) -> Result<Self, Diagnostic> {
        let settings = Settings::new(policy, mode, resumption)?;
        let waits_for_compute =
            identities.certificates.iter().all(|certificate| is_queued(certificate, engine));
        let certificates = Arc::new(settings.certificates(identities, engine)?);
        let answers = Arc::clone(identities.answers);
        let base = settings.base(&certificates, answers, engine).map_err(refused)?.build();
        let client_authentication = settings.client_authentication().map_err(refused)?;
        let (check, policy, resumption) = (settings.check, policy.clone(), Arc::clone(resumption));
        Ok(Self { base, certificates, check, client_authentication, policy, resumption, waits_for_compute })
    }

    /// Returns the certificates, by name and client.
    pub(crate) fn certificates(&self) -> &CertificateSelector {
        &self.certificates
    }

    /// Returns whether the private-key operations of all its certificates wait for a compute thread of this process.
    pub(crate) fn waits_for_compute(&self) -> bool {
        self.waits_for_compute
    }

    /// Returns whether client certificates are requested.
    pub(crate) fn asks_clients(&self) -> bool {
        self.check.is_some()
    }

    /// Returns whether both have the same requirements for clients, so that connections may remain across a reload.
    pub(crate) fn asks_clients_the_same(&self, other: &Self) -> bool {
        self.client_authentication == other.client_authentication
    }

    /// Returns whether a connection of one could have been one of the other: requirements for clients, protocol
    /// versions, groups and cipher suites are the same.
    pub(crate) fn protects_the_same(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.policy, &other.policy);
        self.asks_clients_the_same(other)
            && (ours.min, ours.max) == (theirs.min, theirs.max)
            && (ours.cbc, ours.static_rsa) == (theirs.cbc, theirs.static_rsa)
            && (&ours.groups, &ours.ciphers) == (&theirs.groups, &theirs.ciphers)
    }

    /// Creates a connection over this socket.
    pub(crate) fn session(&self, tcp: &Arc<TcpStream>, visit: Arc<Visit>) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&self.base)?;
        HandshakeState::attach(&mut ssl, Peer::Tcp(Arc::clone(tcp)), &self.resumption, visit)?;
        // SAFETY: the connection is live; state used only by the handshake is freed when it is complete.
        unsafe { ffi::SSL_set_shed_handshake_config(ssl.as_ptr(), 1) };
        Ok(ssl)
    }

    /// Returns whether the client of a completed handshake is accepted.
    pub(crate) fn admits(&self, ssl: &SslRef) -> bool {
        self.check.as_ref().is_none_or(|check| check.passes(ssl))
    }

    /// Returns the resumption backend.
    pub(crate) fn resumption(&self) -> &Arc<ResumptionBackend> {
        &self.resumption
    }
}

/// TLS settings that QUIC connections continue with once their filter chain is known (RFC 9001).
pub(super) struct ForQuic {
    pub(super) certificates: CertificateSelector,
    /// Verification of client certificates and its mode.
    pub(super) check: Option<(ClientVerifier, SslVerifyMode)>,
    pub(super) early_data: bool,
}

impl ForQuic {
    /// Builds the contexts of a chain with these ALPN protocols. They are separate from those of TCP because ALPN
    /// follows the context; tickets are sealed by the same keys.
    pub(super) fn new(
        policy: &TlsPolicy,
        protocols: &[String],
        resumption: &ResumptionBackend,
        identities: Identities<'_>,
        engine: &Engine,
    ) -> Result<Self, Diagnostic> {
        let settings = Settings { protocols, ..Settings::new(policy, Mode::Http, resumption)? };
        let certificates = settings.certificates(identities, engine)?;
        let check = settings.check.zip(verify_mode(&policy.client_auth));
        Ok(Self { certificates, check, early_data: settings.early_data })
    }
}

/// Builds the context that all QUIC connections start with.
pub(super) fn start_of_quic(resumption: &ResumptionBackend) -> Result<SslContextBuilder, Diagnostic> {
    let policy = TlsPolicy { min: Version::Tls13, max: Version::Tls13, ..TlsPolicy::default() };
    Settings::new(&policy, Mode::Http, resumption)?.builder().map_err(refused)
}

fn is_queued(certificate: &Certificate, engine: &Engine) -> bool {
    certificate.key.is_here() && engine.queues(certificate.key.key_type())
}

impl<'a> Settings<'a> {
    fn new(policy: &'a TlsPolicy, mode: Mode, resumption: &ResumptionBackend) -> Result<Self, Diagnostic> {
        let check = match &policy.client_auth {
            ClientAuth::Off => None,
            ClientAuth::Optional(check) | ClientAuth::Required(check) => Some(ClientVerifier::new(check)?),
        };
        let resumption_settings = ResumptionSettings {
            tickets: resumption.tickets.is_some(),
            store: resumption.store.is_some(),
            lifetime: u32::try_from(resumption.lifetime.as_secs()).unwrap_or(u32::MAX),
        };
        // Early data requires requests, which can be marked as replayable, and no client certificate, which would not
        // be proved again.
        let early_data = resumption.early_data && mode == Mode::Http && check.is_none();
        Ok(Self { policy, protocols: &policy.alpn, check, resumption_settings, early_data })
    }

    fn certificates(
        &self,
        identities: Identities<'_>,
        engine: &Engine,
    ) -> Result<CertificateSelector, Diagnostic> {
        let mut selection = CertificateSelector::new(self.policy.max >= Version::Tls13);
        for (certificate, staple) in identities.certificates.iter().zip(identities.staples) {
            let context = self.for_certificate(certificate, engine).map_err(refused)?;
            let session_binding = self.session_binding(&certificate.names).map_err(refused)?;
            let key_type = certificate.key.key_type();
            let queued = is_queued(certificate, engine);
            let (in_chain, staple) = (certificate.in_chain, staple.clone());
            let anchored = certificate.trust_anchor.is_some().then(|| Arc::clone(certificate));
            let entry = Entry { key_type, in_chain, queued, context, session_binding, staple, anchored };
            selection.add(&certificate.names, entry);
        }
        identities.awaited.iter().for_each(|name| selection.expect(name));
        selection.on_demand = identities.on_demand.cloned();
        Ok(selection)
    }

    /// Returns the requirements for clients, including the contents of the files.
    fn client_authentication(&self) -> Result<Vec<Vec<u8>>, ErrorStack> {
        let asked: &[u8] = match self.policy.client_auth {
            ClientAuth::Off => b"off",
            ClientAuth::Optional(..) => b"optional",
            ClientAuth::Required(..) => b"required",
        };
        let checks = self.check.as_ref().map(ClientVerifier::identity).transpose()?.unwrap_or_default();
        Ok(std::iter::once(asked.to_vec()).chain(checks).collect())
    }

    /// Returns the session-id context, apart from the SNI: the certificates (by names, so that renewal keeps clients'
    /// sessions), and the requirements for clients.
    fn session_binding(&self, names: &[String]) -> Result<[u8; 32], ErrorStack> {
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        let asked = self.client_authentication()?;
        let mut hasher = Sha256::new();
        let names = names.iter().map(|name| name.as_bytes());
        for part in names.chain([&b""[..]]).chain(asked.iter().map(Vec::as_slice)) {
            hasher.update(&part.len().to_be_bytes());
            hasher.update(part);
        }
        Ok(hasher.finish())
    }

    /// Builds the context that connections start with, which only selects another.
    fn base(
        &self,
        certificates: &Arc<CertificateSelector>,
        answers: Arc<Answers>,
        engine: &Engine,
    ) -> Result<SslContextBuilder, ErrorStack> {
        let mut builder = self.builder()?;
        let certificates = Arc::clone(certificates);
        let (challenges, resumption) = (engine.clone(), self.resumption_settings);
        let select = move |hello: &mut ClientHello<'_>| {
            let validation = acme_challenge::select(&answers, &challenges, resumption, hello);
            validation.unwrap_or_else(|| Selection::new(&certificates, hello))
        };
        let exchange = KeyExchange::new(engine, self.policy);
        if self.early_data || exchange.is_some() {
            before_selection::install(&mut builder, self.early_data, exchange, select);
        } else {
            builder.set_select_certificate_callback(move |mut hello| {
                contained(Err(SelectCertError::ERROR), || select(&mut hello)?.apply(&mut hello))
            });
        }
        Ok(builder)
    }

    fn for_certificate(&self, certificate: &Certificate, engine: &Engine) -> Result<SslContext, ErrorStack> {
        let mut builder = self.builder()?;
        let key = EngineKey { key: certificate.key.clone(), engine: engine.clone() };
        match certificate.negotiated_anchor() {
            Some(anchor) => credential::install(&mut builder, certificate, anchor, key)?,
            None => set_certificate(&mut builder, certificate, key)?,
        }
        if self.policy.certificate_compression {
            compression::install(&mut builder, &certificate.chain, &certificate.compressed)?;
        }
        Ok(builder.build())
    }

    fn builder(&self) -> Result<SslContextBuilder, ErrorStack> {
        let mut builder = SslContext::builder(SslMethod::tls())?;
        builder.set_min_proto_version(Some(ssl_version(self.policy.min)))?;
        builder.set_max_proto_version(Some(ssl_version(self.policy.max)))?;
        builder.set_options(SslOptions::CIPHER_SERVER_PREFERENCE);
        // Writes end with each record, and may be retried with the same bytes at another address.
        builder.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
        builder.set_strict_cipher_list(&cipher_list(self.policy))?;
        set_tls13_ciphers(&mut builder)?;
        builder.set_curves_list(&group_list(&self.policy.groups))?;
        quadrille_signature_algorithms::verify_all(&mut builder)?;
        self.set_alpn(&mut builder);
        sessions::install(&mut builder, self.resumption_settings)?;
        if self.early_data {
            early_data::allow(&mut builder);
        }
        self.set_client_auth(&mut builder)?;
        Ok(builder)
    }

    fn set_alpn(&self, builder: &mut SslContextBuilder) {
        if self.protocols.is_empty() {
            return;
        }
        let offered = wire_alpn(self.protocols);
        builder.set_alpn_select_callback(move |_, client| {
            contained(None, || choose_alpn(&offered, client)).ok_or(AlpnError::ALERT_FATAL)
        });
    }

    fn set_client_auth(&self, builder: &mut SslContextBuilder) -> Result<(), ErrorStack> {
        let check = self.check.as_ref().zip(verify_mode(&self.policy.client_auth));
        check.map_or(Ok(()), |(check, mode)| check.install(builder, mode))
    }
}

/// Returns BoringSSL's verify mode; `None` if no certificate is requested.
fn verify_mode(asked: &ClientAuth) -> Option<SslVerifyMode> {
    match asked {
        ClientAuth::Off => None,
        ClientAuth::Optional(..) => Some(SslVerifyMode::PEER),
        ClientAuth::Required(..) => Some(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT),
    }
}

/// Returns the server's first protocol that the client offers, as a slice of the client's list, which outlives the
/// callback.
fn choose_alpn<'a>(offered: &[u8], client: &'a [u8]) -> Option<&'a [u8]> {
    let chosen = select_next_proto(offered, client).filter(|chosen| !chosen.is_empty())?;
    client.windows(chosen.len()).find(|window| *window == chosen)
}

/// AEAD suites, in one group of equal preference, so that the client's order decides between AES-GCM (fast with AES
/// instructions) and ChaCha20-Poly1305 (fast without).
const AEAD: &str = "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305|ECDHE-ECDSA-AES256-GCM-SHA384|\
                    ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305|ECDHE-RSA-AES256-GCM-SHA384]";

/// Returns the cipher list of TLS 1.2 and below.
fn cipher_list(policy: &TlsPolicy) -> String {
    if !policy.ciphers.is_empty() {
        return policy.ciphers.join(":");
    }
    // TLS 1.0 and 1.1, which have to be enabled explicitly, have no other suites.
    let cbc = policy.cbc || policy.min < Version::Tls12;
    let parts = [
        (true, AEAD),
        (cbc, ":ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA"),
        (policy.static_rsa, ":AES128-GCM-SHA256:AES256-GCM-SHA384"),
        (policy.static_rsa && cbc, ":AES128-SHA:AES256-SHA"),
    ];
    parts.into_iter().filter_map(|(offered, suites)| offered.then_some(suites)).collect()
}

/// Sets the TLS 1.3 cipher suites: all three with equal preference, for the same reason.
fn set_tls13_ciphers(builder: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    const AES_128_GCM_AES_256_GCM_CHACHA20: [u16; 3] = [0x1301, 0x1302, 0x1303];
    const SAME_AS_NEXT: u32 = ffi::SSL_CIPHER_FLAG_EQUAL_PREFERENCE_WITH_NEXT as u32;
    let flags = [SAME_AS_NEXT, SAME_AS_NEXT, 0];
    // SAFETY: the context is live, and both arrays have the length that is passed.
    let ok = unsafe {
        ffi::SSL_CTX_set1_tls13_ciphers(
            builder.as_ptr(),
            AES_128_GCM_AES_256_GCM_CHACHA20.as_ptr(),
            flags.as_ptr(),
            flags.len(),
        )
    };
    if ok == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

fn set_certificate(
    builder: &mut SslContextBuilder,
    certificate: &Certificate,
    key: EngineKey,
) -> Result<(), ErrorStack> {
    for (index, link) in certificate.chain.iter().enumerate() {
        match index {
            0 => builder.set_certificate(link)?,
            _ => builder.add_extra_chain_cert(link.clone())?,
        }
    }
    builder.set_async_private_key_method(key);
    certificate.ocsp.iter().try_for_each(|response| set_ocsp_response(builder, response))
}

fn set_ocsp_response(builder: &mut SslContextBuilder, response: &[u8]) -> Result<(), ErrorStack> {
    // SAFETY: the context is live; BoringSSL copies the response.
    let ok = unsafe { ffi::SSL_CTX_set_ocsp_response(builder.as_ptr(), response.as_ptr(), response.len()) };
    if ok == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Encodes a length-prefixed ALPN list (RFC 7301 section 3.1). Protocol names were checked to be 1 to 255 bytes.
fn wire_alpn(protocols: &[String]) -> Vec<u8> {
    let prefixed = |name: &String| [&[u8::try_from(name.len()).unwrap_or(u8::MAX)], name.as_bytes()].concat();
    protocols.iter().flat_map(prefixed).collect()
}

fn refused(error: ErrorStack) -> Diagnostic {
    Diagnostic::new(
        &quadrille_config::model::Place::builtin(),
        format!("BoringSSL does not accept these TLS settings: {error}"),
    )
}
