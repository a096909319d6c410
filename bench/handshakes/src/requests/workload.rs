//! Kinds of requests.

use std::fmt;

use crate::{
    rival::{Job, Rival},
    upstream::Body,
};

/// Protocol inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/1.1 that the server does not parse: it forwards bytes.
    Tcp,
}

impl Protocol {
    /// Returns the job of its servers.
    pub fn job(self) -> Job {
        match self {
            Self::Http1 | Self::Http2 => Job::Answer,
            Self::Tcp => Job::PassOn,
        }
    }

    /// Returns the servers that ratios are relative to.
    pub fn baselines(self) -> &'static [Rival] {
        match self {
            Self::Http1 | Self::Http2 => &[Rival::Nginx, Rival::Haproxy, Rival::HaproxyAwsLc, Rival::Envoy],
            Self::Tcp => &[Rival::Hitch, Rival::HaproxyTcp],
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Tcp => "TCP",
        })
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// The protocol.
    pub protocol: Protocol,
    /// Body of each response.
    pub body: Body,
    /// Number of connections, open all the time.
    pub connections: usize,
    /// Concurrent requests per connection.
    pub streams: usize,
    /// Requests per second on all connections together, whether the server keeps up or not; if `None`, each starts
    /// when one ends.
    pub per_second: Option<f64>,
}

impl Workload {
    /// Many small responses: the work per request counts.
    pub const REQUESTS: [Self; 4] = [
        Self::many(Protocol::Http1, Body::SMALL),
        Self::many(Protocol::Http1, Body::MEDIUM),
        Self::many(Protocol::Http2, Body::SMALL),
        Self::many(Protocol::Http2, Body::MEDIUM),
    ];

    /// Few large responses: the work per byte counts.
    pub const DOWNLOADS: [Self; 3] =
        [Self::large(Protocol::Http1), Self::large(Protocol::Http2), Self::large(Protocol::Tcp)];

    const fn many(protocol: Protocol, body: Body) -> Self {
        let streams = if matches!(protocol, Protocol::Http2) { 8 } else { 1 };
        Self { protocol, body, connections: 32, streams, per_second: None }
    }

    const fn large(protocol: Protocol) -> Self {
        Self { protocol, body: Body::LARGE, connections: 4, streams: 1, per_second: None }
    }

    /// Returns the workload at a fixed rate.
    pub fn at(self, per_second: f64) -> Self {
        Self { per_second: Some(per_second), ..self }
    }

    /// Returns whether it measures the cost of bytes, not of requests.
    pub fn is_download(self) -> bool {
        self.body == Body::LARGE
    }

    /// Returns the number of concurrent requests.
    pub fn in_flight(self) -> u64 {
        (self.connections * self.streams) as u64
    }

    /// Returns a short name without spaces, for the JSON.
    pub fn id(self) -> String {
        let protocol = self.protocol.to_string().replace(['/', '.'], "").to_lowercase();
        let body = self.body.to_string().replace(' ', "");
        let rate = if self.per_second.is_some() { "-half-load" } else { "" };
        format!("{protocol}-{body}{rate}")
    }

    /// Returns protocol and body alone.
    pub fn title(self) -> String {
        format!("{}, {}", self.protocol, self.body)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} connections", self.title(), self.connections)?;
        if self.streams > 1 {
            write!(f, " of {} streams", self.streams)?;
        }
        self.per_second.map_or(Ok(()), |rate| write!(f, ", {rate:.0} requests per second"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_workloads_apart() {
        let ids =
            [Workload::REQUESTS.as_slice(), &Workload::DOWNLOADS].concat().into_iter().map(Workload::id);
        let expected = [
            "http11-1400B",
            "http11-16KiB",
            "http2-1400B",
            "http2-16KiB",
            "http11-64MiB",
            "http2-64MiB",
            "tcp-64MiB",
        ];
        assert_eq!(ids.collect::<Vec<_>>(), expected);
        let half = Workload::REQUESTS[2].at(1000.0);
        assert_eq!(half.id(), "http2-1400B-half-load");
        assert_eq!(half.to_string(), "HTTP/2, 1400 B, 32 connections of 8 streams, 1000 requests per second");
    }
}
