//! What a chain of a listener speaks.

/// What is spoken inside TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// HTTP/1.1 and HTTP/2, by ALPN.
    #[default]
    Http,
    /// Bytes are passed to the upstream as they are.
    Tcp,
}
