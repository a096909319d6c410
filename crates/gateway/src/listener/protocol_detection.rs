//! What a client speaks, seen by its first bytes: TLS, plain HTTP where TLS is due, HTTP/1 or HTTP/2.

use crate::tls::Transport;
use std::{fmt, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Why TLS does not begin.
#[derive(Debug)]
pub(crate) enum NotTls {
    Closed(io::Error),
    PlainHttp,
    OtherProtocol,
}

impl NotTls {
    /// The reason in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Closed(_) => "closed",
            Self::PlainHttp => "plain_http",
            Self::OtherProtocol => "not_tls",
        }
    }
}

impl fmt::Display for NotTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(error) => write!(f, "the client left: {error}"),
            Self::PlainHttp => f.write_str("the client spoke plain HTTP"),
            Self::OtherProtocol => f.write_str("the first byte is not that of a TLS handshake"),
        }
    }
}

/// Reads what the client begins with, and leaves it there. TLS begins with a handshake record (RFC 8446 section 5.1).
/// Browsers that were pointed at the wrong scheme are told so.
pub(crate) async fn expect_tls(transport: &mut Transport) -> Result<(), NotTls> {
    const HANDSHAKE: u8 = 22;
    if transport.waiting().is_empty() {
        transport.need_more().await.map_err(NotTls::Closed)?;
    }
    match transport.waiting().first() {
        Some(&HANDSHAKE) => Ok(()),
        Some(byte) if byte.is_ascii_uppercase() => {
            answer_plain_http(transport).await.map_err(NotTls::Closed)?;
            Err(NotTls::PlainHttp)
        }
        _ => Err(NotTls::OtherProtocol),
    }
}

/// Whether a client without TLS begins with the preface of HTTP/2 (RFC 9113 section 3.3); `None` if it leaves before
/// that is clear.
pub(crate) async fn detect_http2(transport: &mut Transport) -> Option<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    loop {
        let waiting = transport.waiting();
        let common = waiting.len().min(PREFACE.len());
        if waiting[..common] != PREFACE[..common] {
            return Some(false);
        }
        if common == PREFACE.len() {
            return Some(true);
        }
        transport.need_more().await.ok()?;
    }
}

async fn answer_plain_http(transport: &mut Transport) -> io::Result<()> {
    const BODY: &str = "This port speaks HTTPS. Use https:// in the address.\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    transport.write_all(answer.as_bytes()).await?;
    transport.shutdown().await?;
    // Closing with unread bytes would reset the connection, and the client might never see the answer.
    let mut rest = [0; 4096];
    for _ in 0..16 {
        if transport.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}
