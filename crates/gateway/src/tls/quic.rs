//! TLS of a chain's QUIC connections (RFC 9001): its certificates, keys and tickets, as quiche drives them.
//!
//! A connection starts with what all have in common (`quic_start`), and goes on with this once its ClientHello has said to
//! which chain it belongs. The callbacks are those of TCP, so a signature waits in the same queue. quiche reads "try again"
//! as "nothing to do", and goes on at its next send.

use super::{
    Identities, before_selection,
    certificate_selection::CertificateSelector,
    client_authentication::ClientVerifier,
    context::ForQuic,
    key_exchange::{self, KeyExchange},
    resumption_backend::ResumptionBackend,
    selection::Selection,
};
use boring::{
    error::ErrorStack,
    ssl::{BoxSelectCertFuture, ClientHello, SelectCertError, SslRef, SslVerifyMode},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_config::{Diagnostic, model::TlsPolicy};
use quadrille_engine::Engine;
use std::{fmt, time::Duration};

/// ALPN of HTTP/3 (RFC 9114 section 3.1).
const HTTP3: &str = "h3";

/// A connection on which nothing moves is forgotten after this time or the chain's, whichever is longer: while a client
/// waits for an answer, it hears of us more often.
const LEAST_IDLE: Duration = Duration::from_secs(30);

/// TLS of a chain's QUIC connections, with what else of them is the chain's.
pub(crate) struct QuicTls {
    certificates: CertificateSelector,
    check: Option<(ClientVerifier, SslVerifyMode)>,
    early_data: bool,
    exchange: Option<KeyExchange>,
    /// Code points, in the server's order.
    groups: Vec<u16>,
    /// Milliseconds.
    idle: u64,
}

impl QuicTls {
    /// Builds all contexts. A connection on which nothing moves for the `idle` time is forgotten.
    pub(crate) fn new(
        policy: &TlsPolicy,
        idle: Duration,
        resumption: &ResumptionBackend,
        identities: Identities<'_>,
        engine: &Engine,
    ) -> Result<Self, Diagnostic> {
        let protocols = [HTTP3.to_owned()];
        let ForQuic { certificates, check, early_data } =
            ForQuic::new(policy, &protocols, resumption, identities, engine)?;
        Ok(Self {
            certificates,
            check,
            early_data,
            exchange: KeyExchange::new(engine, policy),
            groups: key_exchange::code_points(policy),
            idle: u64::try_from(idle.max(LEAST_IDLE).as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Whether the client of a finished handshake is one that is let in.
    pub(crate) fn admits(&self, ssl: &SslRef) -> bool {
        self.check.as_ref().is_none_or(|(check, _)| check.passes(ssl))
    }

    /// Goes on with a connection of the chain. What another context does not bring with it is set on the connection.
    pub(super) fn go_on(&self, hello: &mut ClientHello<'_>) -> Result<BoxSelectCertFuture, SelectCertError> {
        let selection = Selection::new(&self.certificates, hello)?;
        let ssl = hello.ssl_mut();
        if let Some((check, mode)) = &self.check {
            check.install_on(ssl, *mode);
        }
        set_groups(ssl, &self.groups).map_err(|_| SelectCertError::ERROR)?;
        <quiche::Connection>::set_max_idle_timeout_in_handshake(ssl, self.idle)
            .map_err(|_| SelectCertError::ERROR)?;
        Ok(before_selection::wait(hello, selection, self.early_data, self.exchange.as_ref()))
    }
}

impl fmt::Debug for QuicTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuicTls")
    }
}

fn set_groups(ssl: &SslRef, groups: &[u16]) -> Result<(), ErrorStack> {
    // SAFETY: the connection is live, and the array has the length that is passed; BoringSSL copies it.
    let ok = unsafe { ffi::SSL_set1_group_ids(ssl.as_ptr(), groups.as_ptr(), groups.len()) };
    if ok == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}
