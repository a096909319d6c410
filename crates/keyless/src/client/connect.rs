//! Connection setup: from an address to a connection that carries frames.

use super::{Protocol, Settings};
use crate::{
    Address,
    io::{Stream, read_ahead},
    tls,
    wire::{ALPN, Mode},
};
use boring::{error::ErrorStack, ssl::SslConnector};
use std::{io, time::Duration};
use tokio::net::{TcpStream, UnixStream};

/// Reason for which a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Network error.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// No response in time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// The settings require the batched mode.
    #[error("the server does not support {ALPN}")]
    Protocol,
    /// The settings require the batched mode, which needs TLS 1.3.
    #[error("the server lacks TLS 1.3, required by `protocol: batched`; set `protocol: compatible`")]
    Version,
    /// No credentials configured for a server over TCP.
    #[error("a server over TCP needs a CA, a certificate and a key")]
    NoCredentials,
}

impl From<ErrorStack> for ConnectError {
    fn from(error: ErrorStack) -> Self {
        Self::Tls(error.to_string())
    }
}

/// Opens connections.
pub struct Connector {
    tls: Option<SslConnector>,
    protocol: Protocol,
}

/// Connection on which nothing was sent yet.
pub struct Connected {
    pub(crate) stream: Stream,
    /// Negotiated mode.
    pub mode: Mode,
    /// Negotiated parameters, for display: `TLSv1.3, X25519MLKEM768`.
    pub security: String,
}

impl Connector {
    /// Prepares TLS.
    ///
    /// # Errors
    /// If BoringSSL does not accept the certificate or the key.
    pub fn new(settings: &Settings) -> Result<Self, ErrorStack> {
        let offer = settings.protocol != Protocol::Compatible;
        let only = settings.protocol == Protocol::Batched;
        let tls = settings.tls.as_ref();
        let tls = tls.map(|(credentials, trust)| tls::client(credentials, trust, offer, only)).transpose()?;
        Ok(Self { tls, protocol: settings.protocol })
    }

    /// Connects.
    ///
    /// If the server cannot be reached, or one end does not trust the other. In TLS 1.3 a server rejects a client's
    /// certificate after this, by closing the connection.
    pub async fn connect(&self, address: &Address, limit: Duration) -> Result<Connected, ConnectError> {
        let connecting = async {
            match address {
                Address::Tcp { host, port } => self.over_tcp(host, *port).await,
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path).await?;
                    let compatible = self.protocol == Protocol::Compatible;
                    let mode = if compatible { Mode::Compatible } else { Mode::Batched };
                    Ok(Connected { stream: Box::pin(stream), mode, security: "Unix socket".into() })
                }
            }
        };
        tokio::time::timeout(limit, connecting).await.map_err(|_| ConnectError::Timeout(limit))?
    }

    async fn over_tcp(&self, host: &str, port: u16) -> Result<Connected, ConnectError> {
        let connector = self.tls.as_ref().ok_or(ConnectError::NoCredentials)?;
        let tcp = TcpStream::connect((host, port)).await?;
        tcp.set_nodelay(true)?;
        let configuration = connector.configure()?;
        let connected = tokio_boring::connect(configuration, host, read_ahead(tcp)).await;
        let stream = connected.map_err(|error| self.refusal(&error))?;
        let ssl = stream.ssl();
        let ours = ssl.selected_alpn_protocol() == Some(ALPN.as_bytes());
        if self.protocol == Protocol::Batched && !ours {
            return Err(ConnectError::Protocol);
        }
        let mode = if ours { Mode::Batched } else { Mode::Compatible };
        let group = ssl.curve_name().unwrap_or("no group");
        let security = format!("{}, {group}", ssl.version_str());
        Ok(Connected { stream: Box::pin(stream), mode, security })
    }
}

impl Connector {
    /// Converts a handshake failure.
    fn refusal<S>(&self, error: &tokio_boring::HandshakeError<S>) -> ConnectError {
        let reason = reason(error);
        let is_version = reason.contains("PROTOCOL_VERSION") || reason.contains("UNSUPPORTED_PROTOCOL");
        if self.protocol == Protocol::Batched && is_version {
            return ConnectError::Version;
        }
        ConnectError::Tls(reason)
    }
}

/// Returns the reason of a handshake failure, with the certificate error if there is one.
fn reason<S>(error: &tokio_boring::HandshakeError<S>) -> String {
    let verdict = error.ssl().map(boring::ssl::SslRef::verify_result);
    match verdict {
        Some(Err(verdict)) => format!("the server's certificate is not accepted: {}", verdict.error_string()),
        _ => error.to_string(),
    }
}
