//! Protocol detection by the client's first bytes: TLS, plain HTTP where TLS is expected, HTTP/1 or HTTP/2.

use crate::tls::Transport;
use std::{fmt, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Reason for which a TLS handshake does not begin.
#[derive(Debug)]
pub(crate) enum NotTls {
    Closed(io::Error),
    PlainHttp,
    OtherProtocol,
}

impl NotTls {
    /// Returns the reason's label in metrics.
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
            Self::Closed(error) => write!(f, "the client disconnected: {error}"),
            Self::PlainHttp => f.write_str("the client sent plain HTTP"),
            Self::OtherProtocol => f.write_str("the first byte is not the type of a TLS handshake record"),
        }
    }
}

/// Checks without consuming it that the client's first byte begins a handshake record (RFC 8446 section 5.1). Sends
/// an error response to browsers that use plain HTTP.
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

/// Returns whether a client without TLS starts with the HTTP/2 preface (RFC 9113 section 3.3); `None` if it
/// disconnects before that is decided.
pub(crate) async fn detect_http2(transport: &mut Transport) -> Option<bool> {
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

/// Returns the ALPN name of the HTTP version that a client without TLS starts with; `None` for any other protocol.
/// Consumes nothing.
pub(crate) async fn http_version(transport: &mut Transport) -> io::Result<Option<&'static str>> {
    loop {
        match beginning(transport.waiting()) {
            Beginning::Http(version) => return Ok(Some(version)),
            Beginning::Other => return Ok(None),
            Beginning::Unclear => transport.need_more().await?,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    Http(&'static str),
    Other,
    /// More bytes are needed.
    Unclear,
}

/// Maximum length of a request line that is waited for.
const LONGEST_REQUEST_LINE: usize = 16 * 1024;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn beginning(bytes: &[u8]) -> Beginning {
    let common = bytes.len().min(PREFACE.len());
    if bytes[..common] == PREFACE[..common] {
        return if common == PREFACE.len() { Beginning::Http("h2c") } else { Beginning::Unclear };
    }
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = &bytes[..end.unwrap_or(bytes.len())];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (method, rest) = match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], Some(&line[space + 1..])),
        None => (line, None),
    };
    let may_be_target = |rest: &[u8]| rest.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    if method.is_empty() && rest.is_some()
        || !method.iter().all(|byte| is_token(*byte))
        || !rest.is_none_or(may_be_target)
    {
        return Beginning::Other;
    }
    match (end, rest) {
        (None, _) if bytes.len() < LONGEST_REQUEST_LINE => Beginning::Unclear,
        (Some(_), Some(rest)) if rest.ends_with(b" HTTP/1.1") => Beginning::Http("http/1.1"),
        (Some(_), Some(rest)) if rest.ends_with(b" HTTP/1.0") => Beginning::Http("http/1.0"),
        _ => Beginning::Other,
    }
}

/// Returns whether the byte is allowed in a token (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

async fn answer_plain_http(transport: &mut Transport) -> io::Result<()> {
    const BODY: &str = "This port speaks HTTPS. Use https:// in the address.\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    transport.write_all(answer.as_bytes()).await?;
    transport.shutdown().await?;
    // Closing with unread bytes would reset the connection, and the client might not receive the response.
    let mut rest = [0; 4096];
    for _ in 0..16 {
        if transport.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Beginning, LONGEST_REQUEST_LINE, PREFACE, beginning};

    #[test]
    fn http_is_known_by_its_first_line() {
        use Beginning::{Http, Other, Unclear};
        for (bytes, expected) in [
            (&b""[..], Unclear),
            (b"G", Unclear),
            (b"GET /a b", Unclear),
            (b"GET / HTTP/1.1\r", Unclear),
            (b"GET / HTTP/1.1\r\nHost: a", Http("http/1.1")),
            (b"PURGE-1 http://a/ HTTP/1.0\n", Http("http/1.0")),
            (b"PRI", Unclear),
            (b"PRIVATE / HTTP/1.1\r\n", Http("http/1.1")),
            (b"PRI * HTTP/2.0\r\n\r\nSN", Other),
            (PREFACE, Http("h2c")),
            (b"GET / HTTP/2.0\r\n", Other),
            (b"GET /\r\n", Other),
            (b"EHLO mail.example\r\n", Other),
            (b"\r\nGET / HTTP/1.1\r\n", Other),
            (b" / HTTP/1.1\r\n", Other),
            (b"GET /\x01", Other),
            (b"\x16\x03\x01", Other),
            (b"\x00", Other),
        ] {
            assert_eq!(beginning(bytes), expected, "{}", bytes.escape_ascii());
        }
        let endless = vec![b'a'; LONGEST_REQUEST_LINE];
        assert_eq!(beginning(&endless), Other);
        assert_eq!(beginning(&endless[1..]), Unclear);
    }
}
