//! TLS of a filter chain's QUIC connections (RFC 9001): its certificates, keys and tickets, driven by quiche.
//!
//! A connection starts with a common context (`quic_start`), and continues with this one once its ClientHello has
//! determined the chain. The callbacks are those of TCP, so signatures use the same queue. quiche treats "try again"
//! as "nothing to do", and continues at its next send.

use crate::tls::{
    Identities,
    certificate::selection::CertificateSelector,
    context::ForQuic,
    handshake::{
        before_selection,
        client_authentication::ClientVerifier,
        key_exchange::{self, KeyExchange},
        selection::Selection,
    },
    resumption_backend::ResumptionBackend,
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

/// Minimum idle timeout; the chain's is used if it is longer. While a client waits for a response, it receives
/// packets more often.
const LEAST_IDLE: Duration = Duration::from_secs(30);

/// TLS and transport settings of a chain's QUIC connections.
pub(crate) struct QuicTls {
    certificates: CertificateSelector,
    check: Option<(ClientVerifier, SslVerifyMode)>,
    early_data: bool,
    exchange: Option<KeyExchange>,
    /// Code points of the groups, in the server's order.
    groups: Vec<u16>,
    /// Idle timeout in milliseconds.
    idle: u64,
}

impl QuicTls {
    /// Builds all contexts. `idle` is the idle timeout of a connection.
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

    /// Returns whether the client of a completed handshake is accepted.
    pub(crate) fn admits(&self, ssl: &SslRef) -> bool {
        self.check.as_ref().is_none_or(|(check, _)| check.passes(ssl))
    }

    /// Continues a connection with the chain's context. Settings that do not follow the context are set on the
    /// connection.
    pub(crate) fn go_on(&self, hello: &mut ClientHello<'_>) -> Result<BoxSelectCertFuture, SelectCertError> {
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
