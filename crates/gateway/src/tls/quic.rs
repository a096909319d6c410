//! TLS inside QUIC (RFC 9001): the chain's certificates, keys and tickets, as quiche drives them.
//!
//! quiche takes the context that connections start with and gives each its `SSL`; the callbacks are those of TCP, so a
//! signature waits in the same queue. quiche reads "try again" as "nothing to do", and goes on at its next send.

use super::{
    Identities,
    client_authentication::ClientVerifier,
    context,
    handshake_state::{HandshakeState, Peer},
    resumption_backend::ResumptionBackend,
};
use crate::admission::Visit;
use boring::ssl::SslRef;
use quadrille_config::{
    Diagnostic,
    model::{Place, TlsPolicy},
};
use quadrille_engine::Engine;
use quiche::{ConnectionId, RetryConnectionIds};
use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// ALPN of HTTP/3 (RFC 9114 section 3.1).
const HTTP3: &str = "h3";

/// Bytes of requests that a client may send ahead on one stream, and on the connection; as in HTTP/2.
const STREAM_WINDOW: u64 = 256 * 1024;
const CONNECTION_WINDOW: u64 = 1024 * 1024;
/// Streams for requests at a time; as in HTTP/2.
const MOST_STREAMS: u64 = 250;
/// Streams of a client for control and QPACK (RFC 9114 section 6.2), and some that mean nothing.
const MOST_CONTROL_STREAMS: u64 = 8;
/// Before a path is known to carry more: every path of IPv6 does, with the headers of UDP and IP (RFC 8200 section 5).
const LARGEST_DATAGRAM: usize = 1350;
/// Datagrams that a connection begins with. A header is sent as a whole or not at all, and this is how large one can be; it
/// is what others of its kind send (RFC 9002 section 7.2 recommends ten).
const FIRST_FLIGHT: usize = 32;
/// A connection on which nothing moves is forgotten after this time or the listener's, whichever is longer: while a client
/// waits for an answer, it hears of us more often.
const LEAST_IDLE: Duration = Duration::from_secs(30);
/// Connection ids that a client may hold, so that it can move without being followed (RFC 9000 section 5.1.1).
const MOST_CONNECTION_IDS: u64 = 8;

/// TLS of a chain's QUIC connections, with what their transport is like.
pub(crate) struct QuicTls {
    config: Mutex<quiche::Config>,
    check: Option<ClientVerifier>,
    resumption: Arc<ResumptionBackend>,
}

/// A connection that is about to begin.
pub(crate) struct Arrival<'a> {
    /// What the client calls it from now on.
    pub(crate) id: &'a ConnectionId<'a>,
    /// By which the client will know that the connection is gone.
    pub(crate) reset_token: Option<u128>,
    /// What it had called it before a Retry, if there was one, and what the Retry has called it.
    pub(crate) before_retry: Option<(&'a ConnectionId<'a>, &'a ConnectionId<'a>)>,
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

impl QuicTls {
    /// Builds all contexts. A connection on which nothing moves for the `idle` time is forgotten.
    pub(crate) fn new(
        policy: &TlsPolicy,
        idle: Duration,
        resumption: &Arc<ResumptionBackend>,
        identities: Identities<'_>,
        engine: &Engine,
    ) -> Result<Self, Diagnostic> {
        let protocols = [HTTP3.to_owned()];
        let (base, check) = context::for_quic(policy, &protocols, resumption, identities, engine)?;
        let refused =
            |error| Diagnostic::new(&Place::builtin(), format!("no QUIC with these settings: {error}"));
        let mut config =
            quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, base).map_err(refused)?;
        let idle = idle.max(LEAST_IDLE).as_millis();
        config.set_max_idle_timeout(u64::try_from(idle).unwrap_or(u64::MAX));
        config.set_initial_congestion_window_packets(FIRST_FLIGHT);
        config.set_initial_max_data(CONNECTION_WINDOW);
        config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
        config.set_initial_max_stream_data_uni(STREAM_WINDOW);
        config.set_max_connection_window(CONNECTION_WINDOW);
        config.set_max_stream_window(STREAM_WINDOW);
        config.set_initial_max_streams_bidi(MOST_STREAMS);
        config.set_initial_max_streams_uni(MOST_CONTROL_STREAMS);
        config.set_max_recv_udp_payload_size(65_527);
        config.set_max_send_udp_payload_size(LARGEST_DATAGRAM);
        config.set_active_connection_id_limit(MOST_CONNECTION_IDS);
        if resumption.early_data && check.is_none() {
            config.enable_early_data();
        }
        Ok(Self { config: Mutex::new(config), check, resumption: Arc::clone(resumption) })
    }

    /// A new connection. Nothing has been read of it yet.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn accept(
        &self,
        arrival: &Arrival<'_>,
        visit: Arc<Visit>,
    ) -> quiche::Result<quiche::Connection> {
        let Arrival { id, reset_token, before_retry, client, local } = *arrival;
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        config.set_stateless_reset_token(reset_token);
        let mut connection = match before_retry {
            None => quiche::accept(id, None, local, client, &mut config)?,
            Some((original_destination_cid, retry_source_cid)) => {
                let ids = RetryConnectionIds { original_destination_cid, retry_source_cid };
                quiche::accept_with_retry(id, ids, local, client, &mut config)?
            }
        };
        drop(config);
        let peer = Peer::Quic { client, local };
        HandshakeState::attach(connection.as_mut(), peer, &self.resumption, visit)
            .map_err(|_| quiche::Error::TlsFail)?;
        Ok(connection)
    }

    /// Whether the client of a finished handshake is one that is let in.
    pub(crate) fn admits(&self, ssl: &SslRef) -> bool {
        self.check.as_ref().is_none_or(|check| check.passes(ssl))
    }
}

impl fmt::Debug for QuicTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuicTls")
    }
}
