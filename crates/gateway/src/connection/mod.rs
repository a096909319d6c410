//! What is known about one accepted connection: plain data that the way of a connection hands on, and telemetry reads.

mod alarm;
mod client_certificate;
mod patience;
mod pooled_buffer;
mod request_clock;

pub(crate) use alarm::Alarm;
pub(crate) use client_certificate::{CertificateNames, ClientCertificate};
pub(crate) use patience::Patience;
#[cfg(test)]
pub(crate) use pooled_buffer::CAPACITY;
pub(crate) use pooled_buffer::PooledBuffer;
pub(crate) use request_clock::RequestClock;

use http::HeaderValue;
use quadrille_config::model::Timeouts;
use quadrille_engine::KeyType;
use std::{
    net::SocketAddr,
    sync::{OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// What is known about one accepted connection once its handshake is done.
pub(crate) struct Connection {
    /// The client, as the PROXY protocol announces it where that is in use.
    pub(crate) client: SocketAddr,
    /// Where the client has connected to, as the PROXY protocol announces it where that is in use.
    pub(crate) local: SocketAddr,
    /// Where the connection was going before it was redirected here; `None` for others, and for those that were going
    /// to this process.
    pub(crate) original_destination: Option<SocketAddr>,
    /// Whether what follows is about TLS; without it, the rest is empty.
    pub(crate) tls: bool,
    pub(crate) sni: Option<String>,
    /// What the client has shown, if anything.
    pub(crate) certificate: Option<ClientCertificate>,
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) resumed: bool,
    /// Whether what is read now came before the handshake was complete, and may be a copy.
    pub(crate) early: AtomicBool,
    pub(crate) handshake: Duration,
    pub(crate) key: Option<KeyTiming>,
    /// Whether a trace has the handshake already.
    pub(crate) handshake_traced: AtomicBool,
    /// Of the body of its last request, not all was read; of HTTP/1.1.
    pub(crate) left_unread: AtomicBool,
    pub(crate) clock: RequestClock,
    /// The client's address, as headers tell it.
    pub(crate) client_ip: OnceLock<HeaderValue>,
    /// That HTTP/3 is at the same port, as a header tells it.
    pub(crate) http3_here: OnceLock<HeaderValue>,
}

/// What the private-key operation of one handshake took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
    /// On compute threads.
    pub(crate) cpu: Duration,
    /// When the result was there.
    pub(crate) done: Instant,
}

/// What became of the session that a client offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionOutcome {
    /// It offered none.
    New,
    Hit(ResumptionKind),
    Miss(ResumptionKind, &'static str),
}

/// How a client offers a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionKind {
    Ticket,
    Id,
}

impl Connection {
    /// One without TLS.
    pub(crate) fn plain(client: SocketAddr, local: SocketAddr, timeouts: &Timeouts) -> Self {
        Self {
            client,
            local,
            original_destination: None,
            tls: false,
            sni: None,
            certificate: None,
            version: "none",
            cipher: "none",
            resumed: false,
            early: AtomicBool::new(false),
            handshake: Duration::ZERO,
            key: None,
            handshake_traced: AtomicBool::new(false),
            left_unread: AtomicBool::new(false),
            clock: RequestClock::new(timeouts),
            client_ip: OnceLock::new(),
            http3_here: OnceLock::new(),
        }
    }

    /// The client's address without its port, as headers tell it.
    pub(crate) fn client_ip_header(&self) -> &HeaderValue {
        self.client_ip.get_or_init(|| {
            let text = self.client.ip().to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
        })
    }

    /// That HTTP/3 is at the port that this connection has come to, for a day (RFC 7838 section 3).
    pub(crate) fn http3_here(&self) -> &HeaderValue {
        self.http3_here.get_or_init(|| {
            let text = format!("h3=\":{}\"; ma=86400", self.local.port());
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("clear"))
        })
    }

    /// Of the URLs that lead here.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({} -> {})", self.client, self.local)
    }
}
