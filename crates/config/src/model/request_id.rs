//! Request IDs.

/// The handling of `X-Request-Id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestIds {
    /// The origin of the ID.
    pub origin: RequestIdOrigin,
    /// Whether it is sent to clients.
    pub in_response: bool,
}

/// The origin of `X-Request-Id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestIdOrigin {
    /// The ID from a trusted proxy, or else a new one.
    TrustedProxies,
    /// The ID from any client, or else a new one.
    Client,
    /// Always a new ID.
    Gateway,
    /// The ID from the client, if it sends one.
    ClientAlone,
}

impl RequestIdOrigin {
    /// Returns the origin for internal clients, which may choose the ID.
    pub fn of_internal_clients(self) -> Self {
        match self {
            Self::Gateway => Self::Client,
            other => other,
        }
    }
}

impl RequestIds {
    /// IDs for servers, which untrusted clients cannot choose.
    pub const FOR_SERVERS: Self = Self { origin: RequestIdOrigin::TrustedProxies, in_response: false };
}
