//! Protocol mode of a chain.

/// The protocol inside TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// HTTP/1.1 and HTTP/2, by ALPN.
    #[default]
    Http,
    /// A byte stream, which is forwarded to the upstream unchanged.
    Tcp,
}
