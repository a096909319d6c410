//! From an address to a connection on which frames can be sent.

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

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The network says no.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The TLS handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// Only our own mode was wanted.
    #[error("the server does not speak {ALPN}")]
    Protocol,
    /// Only our own mode was wanted, which goes by TLS 1.3 alone.
    #[error("the server has no TLS 1.3, which `protocol: batched` needs; write `protocol: compatible`")]
    Version,
    /// There is nothing to show a server over TCP.
    #[error("a server over TCP needs a CA, a certificate and a key")]
    NoCredentials,
}

impl From<ErrorStack> for ConnectError {
    fn from(error: ErrorStack) -> Self {
        Self::Tls(error.to_string())
    }
}

/// Makes connections.
pub struct Connector {
    tls: Option<SslConnector>,
    protocol: Protocol,
}

/// A connection, before anything was sent on it.
pub struct Connected {
    pub(crate) stream: Stream,
    /// The mode that both ends speak.
    pub mode: Mode,
    /// What was negotiated, for people: `TLSv1.3, X25519MLKEM768`.
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
    /// # Errors
    /// If the server cannot be reached, or one end does not believe the other. In TLS 1.3 a server refuses a client's
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
    /// Why there is no connection.
    fn refusal<S>(&self, error: &tokio_boring::HandshakeError<S>) -> ConnectError {
        let reason = reason(error);
        let is_version = reason.contains("PROTOCOL_VERSION") || reason.contains("UNSUPPORTED_PROTOCOL");
        if self.protocol == Protocol::Batched && is_version {
            return ConnectError::Version;
        }
        ConnectError::Tls(reason)
    }
}

/// What the handshake failed for, with the certificate's fault where it is that.
fn reason<S>(error: &tokio_boring::HandshakeError<S>) -> String {
    let verdict = error.ssl().map(boring::ssl::SslRef::verify_result);
    match verdict {
        Some(Err(verdict)) => format!("the server's certificate is not accepted: {}", verdict.error_string()),
        _ => error.to_string(),
    }
}
