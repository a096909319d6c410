/// Inspection that the first bytes of a client require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether to detect TLS, and read the server name and ALPN protocols.
    pub(crate) tls: bool,
    /// Whether to detect the HTTP version of a client without TLS.
    pub(crate) http: bool,
}

impl Look {
    /// Returns whether no inspection is required.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}
