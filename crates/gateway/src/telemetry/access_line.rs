//! Lines of the access log that have a format of their own.

use crate::connection::{Connection, KeyTiming};
use http::{HeaderValue, Version};
use quadrille_config::model::{LogFormat, LogLayout, LogPart, LogTemplate, LogVariable};
use quadrille_unix_time::{rfc3339, since_epoch};
use std::{
    fmt::{Display, Write},
    net::SocketAddr,
    time::Duration,
};

/// A finished request.
pub(crate) struct Request<'a> {
    /// Address of the client, as reported by trusted proxies; port 0 if they report none.
    pub(crate) client: SocketAddr,
    /// Name of the authenticated user.
    pub(crate) user: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) version: Version,
    pub(crate) scheme: &'a str,
    /// The format of the line, with the values of its request headers.
    pub(crate) format: Option<(&'a LogFormat, &'a [Option<HeaderValue>])>,
    /// Status code; 0 if no response was sent.
    pub(crate) status: u16,
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
    pub(crate) upstream: &'a str,
    pub(crate) upstream_server: Option<&'a dyn Display>,
    /// Time from sending the last attempt to the header of its response.
    pub(crate) upstream_took: Option<Duration>,
    /// Time from sending the last attempt to the end of the exchange.
    pub(crate) response_took: Option<Duration>,
    pub(crate) error: Option<&'a str>,
}

/// A finished connection in TCP mode.
pub(super) struct Transfer<'a> {
    pub(super) to_server: u64,
    pub(super) to_client: u64,
    pub(super) took: Duration,
    pub(super) upstream: &'a str,
}

/// The source of values: a request, or a connection in TCP mode.
enum Source<'a> {
    Request(&'a Request<'a>, &'a [Option<HeaderValue>]),
    Transfer(&'a Transfer<'a>),
}

/// Values of variables.
pub(super) struct Values<'a> {
    source: Source<'a>,
    connection: &'a Connection,
    /// Time since 1970.
    now: Duration,
}

/// A value of a variable.
enum Value {
    /// Text, which may be from a client.
    Bytes(Vec<u8>),
    /// A number, in its text format.
    Number(String),
}

impl<'a> Values<'a> {
    /// Returns the values of a request that has finished now.
    pub(super) fn of_request(
        request: &'a Request<'a>,
        headers: &'a [Option<HeaderValue>],
        connection: &'a Connection,
    ) -> Self {
        Self { source: Source::Request(request, headers), connection, now: since_epoch() }
    }

    /// Returns the values of a connection that has finished now.
    pub(super) fn of_transfer(transfer: &'a Transfer<'a>, connection: &'a Connection) -> Self {
        Self { source: Source::Transfer(transfer), connection, now: since_epoch() }
    }

    /// Returns the line, without a line break.
    pub(super) fn line(&self, format: &LogFormat) -> String {
        match &format.layout {
            LogLayout::Text(template) => {
                let mut line = String::with_capacity(256);
                self.write(&template.parts, &mut line, escape);
                line
            }
            LogLayout::Json(members) => self.json(members),
        }
    }

    /// Writes a text with variables, whose values `put` writes unless they are numbers.
    fn write(&self, parts: &[LogPart], to: &mut String, put: fn(&[u8], &mut String)) {
        for part in parts {
            match part {
                LogPart::Literal(text) => to.push_str(text),
                LogPart::Variable(variable) => match self.value(*variable) {
                    Some(Value::Bytes(bytes)) => put(&bytes, to),
                    Some(Value::Number(number)) => to.push_str(&number),
                    None => to.push('-'),
                },
            }
        }
    }

    /// Writes a JSON object. A member with one variable alone is null without a value, and a number if its value is.
    fn json(&self, members: &[(String, LogTemplate)]) -> String {
        let mut line = String::with_capacity(512);
        line.push('{');
        for (index, (name, template)) in members.iter().enumerate() {
            if index > 0 {
                line.push(',');
            }
            quote(name, &mut line);
            line.push(':');
            match template.parts.as_slice() {
                [LogPart::Variable(variable)] => match self.value(*variable) {
                    Some(Value::Number(number)) => line.push_str(&number),
                    Some(Value::Bytes(bytes)) => quote(&String::from_utf8_lossy(&bytes), &mut line),
                    None => line.push_str("null"),
                },
                parts => {
                    let mut text = String::new();
                    self.write(parts, &mut text, plain);
                    quote(&text, &mut line);
                }
            }
        }
        line.push('}');
        line
    }

    fn value(&self, variable: LogVariable) -> Option<Value> {
        let Connection { version, cipher, resumed, handshake, key, ref sni, tls, .. } = *self.connection;
        let key = |of: fn(KeyTiming) -> Duration| key.map(of).map(seconds);
        match variable {
            LogVariable::TimeLocal => Some(text(common_time(self.now.as_secs()))),
            LogVariable::TimeIso8601 => {
                Some(text(rfc3339(i64::try_from(self.now.as_secs()).unwrap_or(i64::MAX))))
            }
            LogVariable::Msec => Some(seconds(self.now)),
            LogVariable::ServerAddr => Some(text(self.connection.local.ip().to_string())),
            LogVariable::ServerPort => Some(Value::Number(self.connection.local.port().to_string())),
            LogVariable::SslProtocol => present(version),
            LogVariable::SslCipher => present(cipher),
            LogVariable::SslServerName => sni.as_deref().and_then(present),
            LogVariable::SslSessionReused => tls.then(|| text(if resumed { "r" } else { "." })),
            LogVariable::HandshakeTime => tls.then(|| seconds(handshake)),
            LogVariable::KeyWaitTime => key(|key| key.waited),
            LogVariable::KeyTime => key(|key| key.computed),
            LogVariable::KeyBatch => self.connection.key.map(|key| Value::Number(key.batch.to_string())),
            LogVariable::Pid => Some(Value::Number(std::process::id().to_string())),
            _ => match &self.source {
                Source::Request(request, headers) => of_request(request, headers, variable),
                Source::Transfer(transfer) => self.of_tcp(transfer, variable),
            },
        }
    }

    fn of_tcp(&self, transfer: &Transfer<'_>, variable: LogVariable) -> Option<Value> {
        let client = self.connection.client;
        match variable {
            LogVariable::RemoteAddr => Some(text(client.ip().to_string())),
            LogVariable::RemotePort => Some(Value::Number(client.port().to_string())),
            LogVariable::ServerProtocol => Some(text("TCP")),
            LogVariable::BodyBytesSent => Some(Value::Number(transfer.to_client.to_string())),
            LogVariable::BytesReceived => Some(Value::Number(transfer.to_server.to_string())),
            LogVariable::RequestTime => Some(seconds(transfer.took)),
            LogVariable::UpstreamName => present(transfer.upstream),
            _ => None,
        }
    }
}

fn of_request(
    request: &Request<'_>,
    headers: &[Option<HeaderValue>],
    variable: LogVariable,
) -> Option<Value> {
    let target = || match request.query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.to_owned(),
    };
    match variable {
        LogVariable::RequestHeader(index) => {
            headers.get(index)?.as_ref().map(|value| Value::Bytes(value.as_bytes().to_vec()))
        }
        LogVariable::RemoteAddr => Some(text(request.client.ip().to_string())),
        // A proxy may announce an address without its port.
        LogVariable::RemotePort => {
            Some(request.client.port()).filter(|port| *port != 0).map(|port| Value::Number(port.to_string()))
        }
        LogVariable::RemoteUser => request.user.and_then(present),
        LogVariable::Request => {
            Some(text(format!("{} {} {}", request.method, target(), protocol(request.version))))
        }
        LogVariable::RequestMethod => present(request.method),
        LogVariable::RequestUri => Some(text(target())),
        LogVariable::Uri => present(request.path),
        LogVariable::Args => request.query.and_then(present),
        LogVariable::Scheme => present(request.scheme),
        LogVariable::Host => present(request.host),
        LogVariable::ServerProtocol => Some(text(protocol(request.version))),
        LogVariable::Status => Some(Value::Number(request.status.to_string())),
        LogVariable::BodyBytesSent => Some(Value::Number(request.bytes.to_string())),
        LogVariable::RequestTime => Some(seconds(request.took)),
        LogVariable::UpstreamName => Some(request.upstream).filter(|name| *name != "-").and_then(present),
        LogVariable::UpstreamAddr => request.upstream_server.map(|server| text(server.to_string())),
        LogVariable::UpstreamHeaderTime => request.upstream_took.map(seconds),
        LogVariable::UpstreamResponseTime => request.response_took.map(seconds),
        LogVariable::RequestId => request.request_id.and_then(present),
        LogVariable::Error => request.error.and_then(present),
        _ => None,
    }
}

fn text(text: impl Into<String>) -> Value {
    Value::Bytes(text.into().into_bytes())
}

fn present(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| self::text(text))
}

/// Returns seconds with three decimals, as nginx writes them.
fn seconds(duration: Duration) -> Value {
    Value::Number(format!("{}.{:03}", duration.as_secs(), duration.subsec_millis()))
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "HTTP/3.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// Returns a time in UTC as in the Common Log Format.
fn common_time(seconds: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = rfc3339(i64::try_from(seconds).unwrap_or(i64::MAX));
    let (date, clock) = time.split_once('T').unwrap_or_default();
    let mut date = date.rsplitn(3, '-');
    let (day, month, year) = (date.next(), date.next(), date.next());
    let month = month.and_then(|month| month.parse::<usize>().ok()?.checked_sub(1));
    let month = month.and_then(|month| MONTHS.get(month)).unwrap_or(&"-");
    let (day, year) = (day.unwrap_or("-"), year.unwrap_or("-"));
    format!("{day}/{month}/{year}:{} +0000", clock.trim_end_matches('Z'))
}

/// Appends a value as nginx does: quotes, backslashes and bytes that are not printable ASCII as `\xXX`, so that no
/// value ends its quotes or the line.
fn escape(bytes: &[u8], line: &mut String) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => _ = write!(line, "\\x{byte:02X}"),
            _ => line.push(char::from(*byte)),
        }
    }
}

/// Appends a value as it is.
fn plain(bytes: &[u8], text: &mut String) {
    text.push_str(&String::from_utf8_lossy(bytes));
}

fn quote(text: &str, line: &mut String) {
    match serde_json::to_string(text) {
        Ok(quoted) => line.push_str(&quoted),
        Err(_) => line.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::{common_time, escape};

    #[test]
    fn no_value_ends_its_quotes_or_the_line() {
        let mut line = String::new();
        escape("a\"b\\c\r\n\u{7f}ü ~".as_bytes(), &mut line);
        assert_eq!(line, "a\\x22b\\x5Cc\\x0D\\x0A\\x7F\\xC3\\xBC ~");
    }

    #[test]
    fn times_have_the_common_format() {
        assert_eq!(common_time(951_782_400), "29/Feb/2000:00:00:00 +0000");
    }
}
