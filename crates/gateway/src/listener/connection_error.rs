//! Reasons for failed connections, with their labels in metrics, statistics and the log.

use super::{filter_chain::FilterChain, protocol_detection::NotTls, proxy_protocol::ProxyHeaderError};
use crate::{
    admission::{Refusal, Visit},
    quic::Closed,
    telemetry::metrics,
    tls::{ClientRejection, HandshakeState, KeyFailure},
};
use boring::{
    error::ErrorStack,
    ssl::{ErrorCode, SslRef},
};
use boring_sys as ffi;
use std::{error::Error, fmt::Debug, net::SocketAddr};

/// Reason for a failed connection.
pub(super) enum ConnectionError {
    Timeout,
    Closed,
    NoChain,
    ProxyHeader(ProxyHeaderError),
    NotTls(NotTls),
    Key(KeyFailure),
    NoCertificate(String),
    BadCertificate(String),
    Rejected(ClientRejection),
    Refused(Refusal),
    /// There is no certificate for the name that the client requested.
    UnknownName,
    /// The client's ALPN protocols have none in common with the listener's (RFC 7301 section 3.2).
    NoCommonProtocol,
    /// No failure: a certificate authority has validated a name, which is the only purpose of the connection.
    NameValidation,
    Tls(String),
}

impl ConnectionError {
    /// Counts the failure for the chain, and logs it.
    pub(super) fn record(self, peer: SocketAddr, chain: &FilterChain) {
        if let Self::NameValidation = self {
            return tracing::info!(client = %peer, "a certificate authority has validated a name");
        }
        let counters = &chain.counters;
        counters.failures.add();
        match &self {
            Self::Timeout => counters.timeouts.add(),
            Self::Closed | Self::Key(KeyFailure::ClientLeft) => counters.closed.add(),
            Self::Key(_) => counters.key_failures.add(),
            Self::NoCertificate(_) => counters.no_certificate.add(),
            Self::BadCertificate(_) => counters.bad_certificate.add(),
            Self::Rejected(ClientRejection::Name) => counters.bad_name.add(),
            Self::Rejected(ClientRejection::Pin) => counters.bad_pin.add(),
            Self::NoChain
            | Self::ProxyHeader(_)
            | Self::NotTls(_)
            | Self::Refused(_)
            | Self::UnknownName
            | Self::NoCommonProtocol
            | Self::Tls(_)
            | Self::NameValidation => {}
        }
        self.log(peer);
    }

    /// Counts the failure for the process, and logs it.
    pub(super) fn log(self, peer: SocketAddr) {
        let (label, detail) = match self {
            Self::Timeout => ("timeout", "timed out waiting for the client".to_owned()),
            Self::Closed => ("closed", "the client disconnected during the handshake".to_owned()),
            Self::NoChain => ("no_chain", "no filter chain matches the connection".to_owned()),
            Self::ProxyHeader(error) => (error.label(), error.to_string()),
            Self::NotTls(error) => (error.label(), error.to_string()),
            Self::Key(KeyFailure::ClientLeft) => {
                ("closed", "the client disconnected while its private-key operation was queued".to_owned())
            }
            Self::Key(KeyFailure::Shed) => ("shed", "too many private-key operations are queued".to_owned()),
            Self::Key(KeyFailure::Remote(failure)) => ("key_server", failure.to_string()),
            Self::Key(KeyFailure::Failed) => ("key", "the private-key operation failed".to_owned()),
            Self::NameValidation => return,
            Self::Refused(refusal) => ("refused", refusal.label().to_owned()),
            Self::UnknownName => ("unknown_name", "no certificate matches the requested name".to_owned()),
            Self::NoCommonProtocol => {
                ("no_common_protocol", "the client offers no ALPN protocol of the listener".to_owned())
            }
            Self::Rejected(ClientRejection::Name) => {
                ("tls", "the client's certificate does not contain an accepted name".to_owned())
            }
            Self::Rejected(ClientRejection::Pin) => {
                ("tls", "the client's certificate is not pinned".to_owned())
            }
            Self::NoCertificate(reason) | Self::BadCertificate(reason) | Self::Tls(reason) => ("tls", reason),
        };
        metrics::handshake_failed(label);
        tracing::debug!(client = %peer, reason = label, detail, "handshake failed");
    }
}

/// Returns the reason for which BoringSSL has aborted a handshake.
pub(super) fn classify<S: Debug>(error: &tokio_boring::HandshakeError<S>) -> ConnectionError {
    if let Some(refusal) = error.ssl().and_then(HandshakeState::client_rejection) {
        return ConnectionError::Rejected(refusal);
    }
    if let Some(refusal) = error.ssl().and_then(HandshakeState::visit).and_then(Visit::refusal) {
        return ConnectionError::Refused(refusal);
    }
    if error.ssl().is_some_and(HandshakeState::is_name_unknown) {
        return ConnectionError::UnknownName;
    }
    let reason = error.to_string();
    match (error.ssl().and_then(HandshakeState::key_result), error.code()) {
        (Some(Err(failure)), _) => ConnectionError::Key(failure),
        // The connection has failed, or was closed where a message was due.
        (_, Some(ErrorCode::SYSCALL | ErrorCode::ZERO_RETURN)) => ConnectionError::Closed,
        _ if has_reason(error, ffi::SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) => {
            ConnectionError::NoCertificate(reason)
        }
        _ if has_reason(error, ffi::SSL_R_CERTIFICATE_VERIFY_FAILED) => {
            ConnectionError::BadCertificate(reason)
        }
        _ if has_reason(error, ffi::SSL_R_NO_APPLICATION_PROTOCOL) => ConnectionError::NoCommonProtocol,
        _ => ConnectionError::Tls(reason),
    }
}

/// Returns the reason for which a QUIC handshake has failed.
pub(super) fn classify_quic(ssl: &SslRef, closed: Closed) -> ConnectionError {
    /// TLS alerts, as carried by QUIC (RFC 9001 section 4.8, RFC 8446 section 6).
    const ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;
    const CERTIFICATE_REQUIRED: u64 = 116;
    const UNRECOGNIZED_NAME: u64 = 112;
    const NO_APPLICATION_PROTOCOL: u64 = 120;
    const OF_CERTIFICATES: std::ops::RangeInclusive<u64> = 42..=48;
    if let Some(refusal) = HandshakeState::client_rejection(ssl) {
        return ConnectionError::Rejected(refusal);
    }
    if let Some(refusal) = HandshakeState::visit(ssl).and_then(Visit::refusal) {
        return ConnectionError::Refused(refusal);
    }
    if let Some(Err(failure)) = HandshakeState::key_result(ssl) {
        return ConnectionError::Key(failure);
    }
    match closed {
        Closed::ByClient => ConnectionError::Closed,
        Closed::Here(code) if ALERTS.contains(&code) => match code - ALERTS.start() {
            CERTIFICATE_REQUIRED => {
                ConnectionError::NoCertificate("the client did not send a certificate".to_owned())
            }
            UNRECOGNIZED_NAME => ConnectionError::UnknownName,
            NO_APPLICATION_PROTOCOL => ConnectionError::NoCommonProtocol,
            alert if OF_CERTIFICATES.contains(&alert) => ConnectionError::BadCertificate(format!(
                "the client's certificate was rejected (alert {alert})"
            )),
            alert => ConnectionError::Tls(format!("TLS handshake failed (alert {alert})")),
        },
        Closed::Here(code) => ConnectionError::Tls(format!("QUIC handshake failed (error {code:#x})")),
    }
}

/// Returns whether an error of BoringSSL's SSL library has this reason.
fn has_reason(error: &dyn Error, reason: i32) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(stack) = cause.downcast_ref::<ErrorStack>() {
            return stack.errors().iter().any(|error| error.library_reason(ffi::ERR_LIB_SSL) == Some(reason));
        }
        source = cause.source();
    }
    false
}
