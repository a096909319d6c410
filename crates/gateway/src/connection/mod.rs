//! Properties of an accepted connection: plain data, passed along the connection's path and read by telemetry.
//!
//! - `charges`: work that its bytes do not show.
//! - `client_certificate`: the client's certificate and its names.
//! - `request_clock`, `stall_timer`, `lazy_timer`: timeouts.
//! - `pooled_buffer`: buffers for data in transit.

mod charges;
mod client_certificate;
mod lazy_timer;
mod pooled_buffer;
mod request_clock;
mod stall_timer;

pub(crate) use charges::{Charges, REQUEST};
pub(crate) use client_certificate::{CertificateNames, ClientCertificate};
pub(crate) use lazy_timer::Alarm;
#[cfg(test)]
pub(crate) use pooled_buffer::CAPACITY;
pub(crate) use pooled_buffer::{PooledBuffer, release_buffers};
pub(crate) use request_clock::RequestClock;
pub(crate) use stall_timer::Patience;

use http::HeaderValue;
use quadrille_config::model::Timeouts;
use quadrille_engine::KeyType;
use std::{
    net::SocketAddr,
    sync::{OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// Properties of an accepted connection after its handshake.
pub(crate) struct Connection {
    /// Address of the client, as announced by the PROXY protocol where it is in use.
    pub(crate) client: SocketAddr,
    /// Address that the client connected to, as announced by the PROXY protocol where it is in use.
    pub(crate) local: SocketAddr,
    /// Original destination of a redirected connection; `None` for other connections, and for those to this process.
    pub(crate) original_destination: Option<SocketAddr>,
    /// Whether the connection uses TLS; without it, the following fields are empty.
    pub(crate) tls: bool,
    pub(crate) sni: Option<String>,
    /// The client's certificate, if it has presented one.
    pub(crate) certificate: Option<ClientCertificate>,
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) resumed: bool,
    /// Whether the data read now is early data, which may be replayed.
    pub(crate) early: AtomicBool,
    pub(crate) handshake: Duration,
    pub(crate) key: Option<KeyTiming>,
    /// Whether a trace already includes the handshake.
    pub(crate) handshake_traced: AtomicBool,
    /// Whether the body of the last HTTP/1.1 request was not read entirely.
    pub(crate) left_unread: AtomicBool,
    pub(crate) clock: RequestClock,
    pub(crate) charges: Charges,
    /// The client's address as a header value.
    pub(crate) client_ip: OnceLock<HeaderValue>,
    /// The `Alt-Svc` value that advertises HTTP/3 at the same port.
    pub(crate) http3_here: OnceLock<HeaderValue>,
}

/// Timing of a handshake's private-key operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
    /// CPU time on compute threads.
    pub(crate) cpu: Duration,
    /// Time of completion.
    pub(crate) done: Instant,
}

/// Outcome of the session that a client offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionOutcome {
    /// The client offered no session.
    New,
    Hit(ResumptionKind),
    Miss(ResumptionKind, &'static str),
}

/// Kind of an offered session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionKind {
    Ticket,
    Id,
}

impl Connection {
    /// Creates the properties of a connection without TLS.
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
            charges: Charges::default(),
            client_ip: OnceLock::new(),
            http3_here: OnceLock::new(),
        }
    }

    /// Returns the client's address without its port, as a header value.
    pub(crate) fn client_ip_header(&self) -> &HeaderValue {
        self.client_ip.get_or_init(|| {
            let text = self.client.ip().to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
        })
    }

    /// Returns the `Alt-Svc` value that advertises HTTP/3 at the local port, for a day (RFC 7838 section 3).
    pub(crate) fn http3_here(&self) -> &HeaderValue {
        self.http3_here.get_or_init(|| {
            let text = format!("h3=\":{}\"; ma=86400", self.local.port());
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("clear"))
        })
    }

    /// Returns the scheme of URLs for this connection.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({} -> {})", self.client, self.local)
    }
}
