//! HTTP/3, and its advertisement.

/// HTTP/3 (RFC 9114), in addition to HTTP/1.1 and HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Http3 {
    /// The advertisement to clients of HTTP/1.1 and HTTP/2.
    pub alt_svc: AltSvc,
}

/// The header `Alt-Svc` (RFC 7838) in responses over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AltSvc {
    /// The port that the client has connected to, for a day.
    #[default]
    SamePort,
    /// No header; HTTP/3 is advertised by other means, such as DNS (RFC 9460).
    Off,
    /// This value, for instance if another port is forwarded here.
    Value(String),
}
