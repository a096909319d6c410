//! Handshake: from a socket to an identified client.

use super::{
    Identity, Shared,
    client_trust::{PresentedCertificates, VerifiedClients},
};
use crate::{
    io::{ReadAhead, Stream, read_ahead},
    wire::{ALPN, Mode},
};
use boring::ssl::{Ssl, SslRef};
use std::{
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_boring::SslStreamBuilder;

/// Identified client, and its connection.
pub(super) struct IdentifiedClient {
    pub(super) stream: Stream,
    pub(super) mode: Mode,
    pub(super) identity: Identity,
    /// Idle timeout.
    pub(super) idle: Duration,
    /// `None` for users of this machine.
    pub(super) certificates: Option<VerifiedCertificates>,
}

/// Certificates of a client, with the settings that have accepted them.
pub(super) struct VerifiedCertificates {
    presented: PresentedCertificates,
    clients: Arc<VerifiedClients>,
    /// Time at which they, or a revocation list, expire.
    pub(super) expiry: Instant,
}

impl VerifiedCertificates {
    fn new(presented: PresentedCertificates, clients: &Arc<VerifiedClients>) -> Result<Self, String> {
        Ok(Self { expiry: clients.verify(&presented)?, presented, clients: Arc::clone(clients) })
    }

    /// Verifies the certificates again, if the server's settings have changed.
    ///
    /// # Errors
    /// The reason for which they are not accepted any more.
    pub(super) fn apply_changes(&mut self, shared: &Shared) -> Result<(), String> {
        let tls = shared.tls.load();
        if let Some(tls) = tls.as_ref().as_ref().filter(|tls| !Arc::ptr_eq(&tls.clients, &self.clients)) {
            self.clients = Arc::clone(&tls.clients);
            self.verify_again()?;
        }
        Ok(())
    }

    /// Verifies the certificates with the settings that have accepted them.
    ///
    /// # Errors
    /// The reason for which they are not accepted any more.
    pub(super) fn verify_again(&mut self) -> Result<(), String> {
        self.expiry = self.clients.verify(&self.presented)?;
        Ok(())
    }
}

/// Reason for which a client is not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    #[error("neither TLS nor the key protocol (first byte {0:#04x})")]
    Unknown(u8),
    #[error("connection closed before the first byte")]
    Silent,
    /// The kernel's user id identifies the peer of a Unix socket without TLS, but no policy names the user.
    #[error("user {0} is neither the server's own nor named in a policy")]
    User(u32),
}

impl HandshakeError {
    /// Returns whether to log the error: not for port scans and health checks of load balancers.
    pub(super) fn is_worth_logging(&self) -> bool {
        !matches!(self, Self::Silent | Self::Io(_))
    }
}

const TCP_IDLE: Duration = Duration::from_secs(120);
const UNIX_IDLE: Duration = Duration::from_secs(3600);
/// First byte of a TLS record with a handshake (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;

pub(super) async fn over_tcp(shared: &Shared, tcp: TcpStream) -> Result<IdentifiedClient, HandshakeError> {
    tcp.set_nodelay(true)?;
    socket2::SockRef::from(&tcp).set_keepalive(true)?;
    over_tls(shared, read_ahead(tcp), TCP_IDLE).await
}

/// Accepts a client on this machine: TLS as over TCP, or the protocol itself with the kernel's user id.
pub(super) async fn over_unix(shared: &Shared, unix: UnixStream) -> Result<IdentifiedClient, HandshakeError> {
    let uid = unix.peer_cred()?.uid();
    let mut stream = read_ahead(unix);
    let first = *stream.fill_buf().await?.first().ok_or(HandshakeError::Silent)?;
    if first == TLS_HANDSHAKE {
        return over_tls(shared, stream, UNIX_IDLE).await;
    }
    let mode = Mode::from_first_byte(first).ok_or(HandshakeError::Unknown(first))?;
    // SAFETY: geteuid has no preconditions and cannot fail.
    let own = unsafe { libc::geteuid() };
    if uid != own && uid != 0 && !shared.policy.load().has_rules() {
        return Err(HandshakeError::User(uid));
    }
    let (stream, identity) = (Box::pin(stream), Identity::of_user(uid));
    Ok(IdentifiedClient { stream, mode, identity, idle: UNIX_IDLE, certificates: None })
}

async fn over_tls<S>(
    shared: &Shared,
    socket: ReadAhead<S>,
    idle: Duration,
) -> Result<IdentifiedClient, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + fmt::Debug + 'static,
{
    let tls = shared.tls.load_full();
    let no_certificate = || HandshakeError::Tls("the server has no certificate".into());
    let tls = tls.as_ref().as_ref().ok_or_else(no_certificate)?;
    let ssl = Ssl::new(&tls.context).map_err(|error| HandshakeError::Tls(error.to_string()))?;
    let accepted = SslStreamBuilder::new(ssl, socket).accept().await;
    let stream = accepted.map_err(|error| HandshakeError::Tls(reason(error.ssl(), &error)))?;
    let ssl = stream.ssl();
    let certificate =
        ssl.peer_certificate().ok_or_else(|| HandshakeError::Tls("no client certificate".into()))?;
    let identity = Identity::of_certificate(&certificate);
    let presented = PresentedCertificates::of(ssl).map_err(|error| HandshakeError::Tls(error.to_string()))?;
    let certificates = presented.map(|presented| VerifiedCertificates::new(presented, &tls.clients));
    let certificates = certificates.transpose().map_err(HandshakeError::Tls)?;
    let ours = ssl.selected_alpn_protocol() == Some(ALPN.as_bytes());
    let mode = if ours { Mode::Batched } else { Mode::Compatible };
    Ok(IdentifiedClient { stream: Box::pin(stream), mode, identity, idle, certificates })
}

/// Returns the reason, with the error and the subject of the client's certificate if that is the cause.
fn reason(ssl: Option<&SslRef>, error: &dyn fmt::Display) -> String {
    let verdict = ssl.and_then(|ssl| ssl.verify_result().err());
    let certificate = ssl.and_then(SslRef::peer_certificate);
    let (Some(verdict), Some(certificate)) = (verdict, certificate) else { return error.to_string() };
    let client = Identity::of_certificate(&certificate);
    format!("the certificate of {client} is not accepted: {}", verdict.error_string())
}
