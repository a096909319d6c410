//! Fields of the access log.

/// A field of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogField {
    /// The client's address.
    Client,
    /// The user name of Basic authentication.
    User,
    /// The request's method.
    Method,
    /// The host that the request is for.
    Host,
    /// The request's path, without the query.
    Path,
    /// The request's query, which may contain private data.
    Query,
    /// The client's `User-Agent`.
    UserAgent,
    /// `X-Request-Id`, as sent to the server.
    RequestId,
    /// The HTTP version, or TCP.
    Protocol,
    /// The status of the response; 0 if there was no response.
    Status,
    /// Size of the response's body, as sent, in bytes.
    Bytes,
    /// Bytes received from a client in TCP mode.
    BytesIn,
    /// Duration of the request.
    RequestTime,
    /// Duration of a connection in TCP mode.
    ConnectionTime,
    /// The upstream's name.
    Upstream,
    /// The address of its server.
    UpstreamServer,
    /// Time from sending the request to that server to the header of its response.
    UpstreamTime,
    /// The error, if any.
    Error,
    /// The TLS version.
    TlsVersion,
    /// The cipher suite.
    Cipher,
    /// The client's SNI.
    Sni,
    /// Whether the session was resumed.
    Resumed,
    /// Duration of the handshake.
    HandshakeTime,
    /// Time that its private-key operation waited.
    KeyWaitTime,
    /// Duration of the private-key operation.
    KeyTime,
    /// Size of the batch in which the operation was computed.
    Batch,
}

/// The fields of each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogFields(u32);

impl LogFields {
    /// No field.
    pub const NONE: Self = Self(0);

    /// Adds a field.
    #[must_use]
    pub const fn with(self, field: LogField) -> Self {
        Self(self.0 | 1 << field as u32)
    }

    /// Adds all of these fields.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns whether a field is included.
    pub const fn has(self, field: LogField) -> bool {
        self.0 & (1 << field as u32) != 0
    }

    /// Returns the fields as a number, the reverse of [`Self::from_bits`].
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Converts the number of [`Self::bits`] back.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// All fields except the query and the user agent, which are personal data.
impl Default for LogFields {
    fn default() -> Self {
        let private = Self::NONE.with(LogField::Query).with(LogField::UserAgent);
        Self(((1 << (LogField::Batch as u32 + 1)) - 1) & !private.0)
    }
}
