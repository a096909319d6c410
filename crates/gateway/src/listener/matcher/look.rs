/// What has to be known of what a client says first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether it is TLS, with names and protocols.
    pub(crate) tls: bool,
    /// Which version of HTTP it is, without TLS.
    pub(crate) http: bool,
}

impl Look {
    /// Nothing.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}
