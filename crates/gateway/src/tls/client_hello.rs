//! ClientHello parsing, before the connection's filter chain is known.

use super::{Transport, server_name};
use std::io;

/// Contents of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientHelloInfo {
    /// Whether the client speaks TLS; if not, the other fields are empty.
    pub(crate) tls: bool,
    /// Server name (SNI) in lower case.
    pub(crate) server_name: Option<String>,
    /// ALPN protocols, in the client's order.
    pub(crate) protocols: Vec<String>,
    /// Whether a ticket or a TLS 1.3 session is offered for resumption.
    pub(crate) offers_session: bool,
}

impl ClientHelloInfo {
    /// Returns a TLS client without known properties.
    fn nameless() -> Self {
        Self { tls: true, ..Self::default() }
    }
}

/// Maximum number of bytes read for a ClientHello; BoringSSL does not accept a larger one.
const LONGEST: usize = 16 * 1024 + 4;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// Parses the ClientHello without consuming it.
///
/// # Errors
/// Returns an error if the client disconnects. An unreadable message that begins like TLS counts as TLS without a
/// name: BoringSSL reports what is wrong with it.
pub(crate) async fn peek(transport: &mut Transport) -> io::Result<ClientHelloInfo> {
    loop {
        if let Some(hello) = parse(transport.waiting()) {
            return Ok(hello);
        }
        transport.need_more().await?;
    }
}

/// Returns whether a ClientHello without a session has arrived; false if none has. Consumes nothing.
pub(crate) fn wants_full_handshake(tcp: &std::net::TcpStream) -> bool {
    /// Length of almost all ClientHellos.
    const USUAL: usize = 4096;
    let mut bytes = [0; USUAL];
    let hello = tcp.peek(&mut bytes).ok().and_then(|length| parse(&bytes[..length]));
    hello.is_some_and(|hello| hello.tls && !hello.offers_session)
}

/// Parses a ClientHello; `None` if more bytes are needed.
fn parse(bytes: &[u8]) -> Option<ClientHelloInfo> {
    if *bytes.first()? != HANDSHAKE {
        return Some(ClientHelloInfo::default());
    }
    match message(bytes) {
        Message::Whole(body) => Some(read(&body)),
        Message::Broken => Some(ClientHelloInfo::nameless()),
        Message::Partial => None,
    }
}

enum Message {
    /// Body of a ClientHello.
    Whole(Vec<u8>),
    Partial,
    Broken,
}

/// Assembles the first handshake message of these records (RFC 8446 section 5.1), which may span several.
fn message(mut bytes: &[u8]) -> Message {
    let mut collected = Vec::new();
    loop {
        if let [kind, a, b, c, body @ ..] = &collected[..] {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *kind != CLIENT_HELLO || length > LONGEST {
                return Message::Broken;
            }
            if let Some(body) = body.get(..length) {
                return Message::Whole(body.to_vec());
            }
        }
        match bytes {
            [] => return Message::Partial,
            [HANDSHAKE, 3, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                // Empty records would be read forever.
                if length == 0 {
                    return Message::Broken;
                }
                let here = length.min(rest.len());
                collected.extend_from_slice(&rest[..here]);
                bytes = &rest[here..];
            }
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => {
                return Message::Partial;
            }
            _ => return Message::Broken,
        }
    }
}

/// Parses the body of a ClientHello. An unreadable one has no name: BoringSSL reports what is wrong with it.
pub(crate) fn read(body: &[u8]) -> ClientHelloInfo {
    parse_client_hello(body).unwrap_or_else(ClientHelloInfo::nameless)
}

/// Parses the fields of a ClientHello (RFC 8446 section 4.1.2).
fn parse_client_hello(body: &[u8]) -> Option<ClientHelloInfo> {
    let mut hello = ClientHelloInfo::nameless();
    // Skips version and random.
    let mut rest = body.get(34..)?;
    take(&mut rest, 1)?;
    take(&mut rest, 2)?;
    take(&mut rest, 1)?;
    if rest.is_empty() {
        return Some(hello);
    }
    let mut extensions = take(&mut rest, 2)?;
    while !extensions.is_empty() {
        let (kind, after) = extensions.split_at_checked(2)?;
        extensions = after;
        let content = take(&mut extensions, 2)?;
        match kind {
            [0, 0] => hello.server_name = host_name(content),
            [0, 16] => hello.protocols = protocols(content)?,
            // Session ticket (RFC 5077); empty if the client has none.
            [0, 35] => hello.offers_session |= !content.is_empty(),
            // Pre-shared key (RFC 8446 section 4.2.11).
            [0, 41] => hello.offers_session = true,
            _ => {}
        }
    }
    Some(hello)
}

/// Takes a value prefixed by a length of `size` bytes.
fn take<'a>(bytes: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_at_checked(size)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

/// Parses the server_name extension (RFC 6066 section 3).
fn host_name(mut extension: &[u8]) -> Option<String> {
    let mut names = take(&mut extension, 2)?;
    while let Some((kind, rest)) = names.split_first() {
        names = rest;
        let name = take(&mut names, 2)?;
        if *kind == 0 {
            let name = std::str::from_utf8(name).ok().filter(|name| name.is_ascii() && !name.contains('\0'));
            return name.map(server_name::normalized).filter(|name| !name.is_empty());
        }
    }
    None
}

/// Parses the ALPN extension (RFC 7301 section 3.1).
fn protocols(mut extension: &[u8]) -> Option<Vec<String>> {
    let mut list = take(&mut extension, 2)?;
    let mut protocols = Vec::new();
    while !list.is_empty() {
        protocols.push(String::from_utf8_lossy(take(&mut list, 1)?).into_owned());
    }
    Some(protocols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use boring::ssl::{SslConnector, SslMethod};
    use std::io::{ErrorKind, Read, Write};

    /// Records what a client writes, and returns no data.
    struct Sink(Vec<u8>);

    impl Read for Sink {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn hello() -> Vec<u8> {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a builder");
        builder.set_alpn_protos(b"\x02h2\x08http/1.1").expect("protocols");
        let connector = builder.build();
        let connecting = connector.connect("WWW.example.com", Sink(Vec::new()));
        let Err(boring::ssl::HandshakeError::WouldBlock(waiting)) = connecting else {
            panic!("the handshake cannot continue")
        };
        waiting.get_ref().0.clone()
    }

    fn expected() -> ClientHelloInfo {
        let protocols = vec!["h2".to_owned(), "http/1.1".to_owned()];
        let server_name = Some("www.example.com".into());
        ClientHelloInfo { tls: true, server_name, protocols, offers_session: false }
    }

    #[test]
    fn a_real_hello_is_read_once_it_is_whole() {
        let bytes = hello();
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), None, "{length} of {}", bytes.len());
        }
        assert_eq!(parse(&bytes), Some(expected()));
    }

    #[test]
    fn a_hello_may_be_in_many_records() {
        let bytes = hello();
        let split: Vec<u8> =
            bytes[5..].chunks(7).flat_map(|part| [&[22, 3, 1, 0, part.len() as u8], part].concat()).collect();
        assert_eq!(parse(&split), Some(expected()));
        assert_eq!(parse(&split[..split.len() - 1]), None);
    }

    #[test]
    fn other_things_are_not_tls_or_have_no_name() {
        let nameless = ClientHelloInfo::nameless();
        assert_eq!(parse(b"GET / HTTP/1.1"), Some(ClientHelloInfo::default()));
        for broken in [&b"\x16\x03\x01\x00\x00"[..], b"\x16GET", b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"] {
            assert_eq!(parse(broken), Some(nameless.clone()), "{broken:?}");
        }
        let long = [&[22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &[0; 100]].concat();
        assert_eq!(parse(&long), Some(nameless));
    }

    #[test]
    fn sessions_are_offered_by_ticket_or_by_pre_shared_key() {
        let offers = |extension: &[u8]| {
            let length = extension.len() as u8;
            let body = [&[0; 34], &[0, 0, 2, 0x13, 1, 1, 0, 0, length][..], extension].concat();
            parse_client_hello(&body).expect("a ClientHello").offers_session
        };
        assert!(offers(&[0, 35, 0, 1, 7]) && offers(&[0, 41, 0, 1, 7]));
        assert!(!offers(&[0, 35, 0, 0]) && !offers(&[0, 45, 0, 1, 7]));
    }

    #[test]
    fn damage_never_panics() {
        let bytes = hello();
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let _ = parse(&damaged);
            }
        }
    }
}
