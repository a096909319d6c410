//! What a line of the access log tells.

/// A field of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogField {
    /// The client's address.
    Client,
    /// Who has logged in by name and password.
    User,
    /// The request's method.
    Method,
    /// The host that the request is for.
    Host,
    /// Its path, without the query.
    Path,
    /// Its query, which may hold what is nobody's business.
    Query,
    /// What the client says that it is.
    UserAgent,
    /// `X-Request-Id`, as the server got it.
    RequestId,
    /// HTTP's version, or TCP.
    Protocol,
    /// Of the response; 0 if there was none.
    Status,
    /// Of the response's body, as sent.
    Bytes,
    /// From a client of TCP.
    BytesIn,
    /// How long the request took.
    RequestTime,
    /// How long a connection over TCP lasted.
    ConnectionTime,
    /// The upstream's name.
    Upstream,
    /// The address of its server.
    UpstreamServer,
    /// From asking that server to the header of its response.
    UpstreamTime,
    /// What went wrong.
    Error,
    /// TLS's version.
    TlsVersion,
    /// Its cipher suite.
    Cipher,
    /// The name that the client asked for.
    Sni,
    /// Whether the session was resumed.
    Resumed,
    /// How long the handshake took.
    HandshakeTime,
    /// How long its private-key operation waited.
    KeyWaitTime,
    /// How long that took.
    KeyTime,
    /// With how many others it was computed.
    Batch,
}

/// The fields of each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogFields(u32);

impl LogFields {
    /// No field.
    pub const NONE: Self = Self(0);

    /// The same with one more.
    #[must_use]
    pub const fn with(self, field: LogField) -> Self {
        Self(self.0 | 1 << field as u32)
    }

    /// The same with all of these.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether a field is among them.
    pub const fn has(self, field: LogField) -> bool {
        self.0 & (1 << field as u32) != 0
    }

    /// As a number, from which [`Self::from_bits`] makes them again.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The reverse of [`Self::bits`].
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// All but what says much of people: the query and the user agent.
impl Default for LogFields {
    fn default() -> Self {
        let private = Self::NONE.with(LogField::Query).with(LogField::UserAgent);
        Self(((1 << (LogField::Batch as u32 + 1)) - 1) & !private.0)
    }
}
