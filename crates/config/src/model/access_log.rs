//! The access log: its destination, and formats of its lines.

use http::HeaderName;
use std::{net::SocketAddr, path::PathBuf};

/// The destination of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessLog {
    /// No access log.
    #[default]
    Off,
    /// Standard output.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
    /// Appended to a file of limited size.
    RotatedFile(RotatedFile),
}

/// A file of limited size. When it is full, it gets the suffix `.1`, and the file that had it `.2`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RotatedFile {
    /// The path.
    pub path: PathBuf,
    /// Size in bytes beyond which a new file begins.
    pub max_size: u64,
    /// Number of former files that are kept.
    pub keep: u32,
}

/// A syslog server that receives a message for each line, and the properties of messages (RFC 5424).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Syslog {
    /// The server.
    pub server: SyslogServer,
    /// The facility, from 0 (kern) to 23 (local7).
    pub facility: u8,
    /// `APP-NAME` of messages.
    pub tag: String,
}

/// The address of a syslog server that receives datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyslogServer {
    /// UDP (RFC 5426).
    Udp(SocketAddr),
    /// A Unix socket, such as `/dev/log`.
    Unix(PathBuf),
}

/// Format of the lines of the access log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogFormat {
    /// The layout.
    pub layout: LogLayout,
    /// Request headers that are read, which [`LogVariable::RequestHeader`] refers to by index.
    pub headers: Vec<HeaderName>,
}

/// Layout of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogLayout {
    /// Text with variables.
    Text(LogTemplate),
    /// A JSON object with these members.
    Json(Vec<(String, LogTemplate)>),
}

/// A text with variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogTemplate {
    /// The text as configured.
    pub text: String,
    /// Parts of the text.
    pub parts: Vec<LogPart>,
}

/// A part of a text with variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogPart {
    /// Fixed text.
    Literal(String),
    /// A value of the request or the connection.
    Variable(LogVariable),
}

/// A variable of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogVariable {
    /// A request header, by its index in [`LogFormat::headers`].
    RequestHeader(usize),
    /// The client's address.
    RemoteAddr,
    /// The client's port.
    RemotePort,
    /// The user name of Basic authentication.
    RemoteUser,
    /// Time of the end of the request, as in the Common Log Format, in UTC.
    TimeLocal,
    /// Time of the end of the request (RFC 3339), in UTC.
    TimeIso8601,
    /// Time of the end of the request, in seconds since 1970, with milliseconds.
    Msec,
    /// The request line: method, target and version.
    Request,
    /// The method.
    RequestMethod,
    /// Path and query.
    RequestUri,
    /// The path.
    Uri,
    /// The query.
    Args,
    /// `https` or `http`.
    Scheme,
    /// The host that the request is for.
    Host,
    /// The HTTP version, such as `HTTP/2.0`; `TCP` for connections in TCP mode.
    ServerProtocol,
    /// The address that the client connected to.
    ServerAddr,
    /// The port that the client connected to.
    ServerPort,
    /// Status of the response.
    Status,
    /// Size of the response's body, as sent, in bytes.
    BodyBytesSent,
    /// Bytes that a client sent in TCP mode.
    BytesReceived,
    /// Duration of the request, or of a connection in TCP mode, in seconds, with milliseconds.
    RequestTime,
    /// Name of the upstream.
    UpstreamName,
    /// Address of its server.
    UpstreamAddr,
    /// Time from sending the request to the server to the header of its response, in seconds.
    UpstreamHeaderTime,
    /// Time from sending the request to the server to the end of its response, in seconds.
    UpstreamResponseTime,
    /// `X-Request-Id`, as sent to the server.
    RequestId,
    /// The error, if any.
    Error,
    /// The TLS version.
    SslProtocol,
    /// The cipher suite.
    SslCipher,
    /// The client's SNI.
    SslServerName,
    /// `r` if the session was resumed, `.` otherwise.
    SslSessionReused,
    /// Duration of the handshake, in seconds.
    HandshakeTime,
    /// Time that its private-key operation waited, in seconds.
    KeyWaitTime,
    /// Duration of the private-key operation, in seconds.
    KeyTime,
    /// Size of the batch in which the operation was computed.
    KeyBatch,
    /// Id of this process.
    Pid,
}
