//! Names of requests.

/// What becomes of `X-Request-Id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestIds {
    /// Where it comes from.
    pub origin: RequestIdOrigin,
    /// Clients are told it.
    pub in_response: bool,
}

/// Where `X-Request-Id` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestIdOrigin {
    /// That of a trusted proxy, or else a new one.
    TrustedProxies,
    /// That of the client, whoever it is, or else a new one.
    Client,
    /// A new one always.
    Gateway,
    /// That of the client, or none.
    ClientAlone,
}

impl RequestIdOrigin {
    /// For clients whose word is taken.
    pub fn of_internal_clients(self) -> Self {
        match self {
            Self::Gateway => Self::Client,
            other => other,
        }
    }
}

impl RequestIds {
    /// Servers have one that nobody else could choose.
    pub const FOR_SERVERS: Self = Self { origin: RequestIdOrigin::TrustedProxies, in_response: false };
}
