//! HTTP/3, and how clients hear of it.

/// HTTP/3 beside HTTP/1.1 and HTTP/2 (RFC 9114).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Http3 {
    /// How clients of HTTP/1.1 and HTTP/2 hear of it.
    pub alt_svc: AltSvc,
}

/// The header `Alt-Svc` (RFC 7838) in answers over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AltSvc {
    /// The port that the client has connected to, for a day.
    #[default]
    SamePort,
    /// Clients are told elsewhere, such as in the DNS (RFC 9460).
    Off,
    /// This value, as where another port leads here.
    Value(String),
}
