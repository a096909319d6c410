//! What is offered to a server by ALPN (RFC 7301).

/// What is offered by ALPN (RFC 7301), in its wire form; nothing for protocols that have no name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    None,
    Http1,
    Http2,
    Both,
}

impl Alpn {
    pub(super) fn wire(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Http1 => b"\x08http/1.1",
            Self::Http2 => b"\x02h2",
            Self::Both => b"\x02h2\x08http/1.1",
        }
    }
}
