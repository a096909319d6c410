//! Start of QUIC connections, before their filter chain is known: the first datagrams carry the ClientHello, and
//! BoringSSL parses it.

use super::quic_tls::QuicTls;
use crate::{
    admission::Visit,
    tls::{
        contained, context,
        handshake::alert::{Alert, send_alert},
        handshake_state::{HandshakeState, Peer},
        resumption_backend::ResumptionBackend,
    },
};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{
        AsyncSelectCertError, BoxSelectCertFuture, ClientHello, SelectCertError, Ssl, SslContextBuilder,
        SslRef,
    },
};
use quadrille_config::{Diagnostic, model::Place};
use quiche::{ConnectionId, RetryConnectionIds};
use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// Flow-control windows in bytes, per stream and per connection; as in HTTP/2.
const STREAM_WINDOW: u64 = 256 * 1024;
const CONNECTION_WINDOW: u64 = 1024 * 1024;
/// Maximum number of concurrent request streams; as in HTTP/2.
const MOST_STREAMS: u64 = 250;
/// Maximum number of unidirectional streams of a client: control and QPACK (RFC 9114 section 6.2), and some reserved
/// ones.
const MOST_CONTROL_STREAMS: u64 = 8;
/// Maximum datagram size before path MTU discovery. Every IPv6 path carries it with the UDP and IP headers (RFC 8200
/// section 5).
const LARGEST_DATAGRAM: usize = 1350;
/// Initial congestion window in datagrams. A header is sent entirely or not at all, and it can have this size; other
/// implementations use as much (RFC 9002 section 7.2 recommends ten).
const FIRST_FLIGHT: usize = 32;
/// Maximum number of active connection IDs of a client, so that it can migrate without being linkable (RFC 9000
/// section 5.1.1).
const MOST_CONNECTION_IDS: u64 = 8;

/// Factory of QUIC connections.
pub(crate) struct QuicStart(Mutex<quiche::Config>);

/// The first packet of a new connection.
pub(crate) struct Arrival<'a> {
    /// Connection ID that the client uses from now on.
    pub(crate) id: &'a ConnectionId<'a>,
    /// Stateless reset token of the connection.
    pub(crate) reset_token: Option<u128>,
    /// Connection IDs before a Retry, if there was one: the client's original, and the one of the Retry.
    pub(crate) before_retry: Option<(&'a ConnectionId<'a>, &'a ConnectionId<'a>)>,
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Lookup of a connection's filter chain.
pub(crate) trait ChainFinder: Send + Sync {
    /// Returns the TLS settings of the client's chain, by the body of its ClientHello, and the client's admission
    /// state; the alert to send if there is no chain. Called once, before any computation.
    fn find(&self, hello: &[u8]) -> Result<(Arc<QuicTls>, Arc<Visit>), Alert>;
}

/// A connection whose filter chain is not known yet.
struct Newcomer {
    chains: Arc<dyn ChainFinder>,
    client: SocketAddr,
    local: SocketAddr,
}

/// Index of the connection's ex_data, set until its chain is known.
static NEWCOMER: LazyLock<Option<Index<Ssl, Option<Newcomer>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl QuicStart {
    /// Creates the factory for all connections with this resumption backend.
    pub(crate) fn new(resumption: &Arc<ResumptionBackend>) -> Result<Self, Diagnostic> {
        let mut base = context::start_of_quic(resumption)?;
        install(&mut base, Arc::clone(resumption));
        let refused = |error| Diagnostic::new(&Place::builtin(), format!("QUIC cannot be set up: {error}"));
        let mut config =
            quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, base).map_err(refused)?;
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
        Ok(Self(Mutex::new(config)))
    }

    /// Creates a connection, from which nothing has been read yet.
    ///
    /// # Errors
    /// Returns an error if there is no memory.
    pub(crate) fn accept(
        &self,
        arrival: &Arrival<'_>,
        chains: Arc<dyn ChainFinder>,
    ) -> quiche::Result<quiche::Connection> {
        let Arrival { id, reset_token, before_retry, client, local } = *arrival;
        let mut config = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        config.set_stateless_reset_token(reset_token);
        let mut connection = match before_retry {
            None => quiche::accept(id, None, local, client, &mut config)?,
            Some((original_destination_cid, retry_source_cid)) => {
                let ids = RetryConnectionIds { original_destination_cid, retry_source_cid };
                quiche::accept_with_retry(id, ids, local, client, &mut config)?
            }
        };
        drop(config);
        let ssl: &mut SslRef = connection.as_mut();
        let newcomer = Newcomer { chains, client, local };
        ssl.set_ex_data((*NEWCOMER).ok_or(quiche::Error::TlsFail)?, Some(newcomer));
        Ok(connection)
    }
}

impl fmt::Debug for QuicStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuicStart")
    }
}

/// Makes a context's connections continue with the chain that is found for them.
fn install(builder: &mut SslContextBuilder, resumption: Arc<ResumptionBackend>) {
    builder.set_async_select_certificate_callback(move |hello| {
        contained(Err(AsyncSelectCertError), || begin(hello, &resumption).map_err(|_| AsyncSelectCertError))
    });
}

fn begin(
    hello: &mut ClientHello<'_>,
    resumption: &Arc<ResumptionBackend>,
) -> Result<BoxSelectCertFuture, SelectCertError> {
    let newcomer = (*NEWCOMER).and_then(|index| hello.ssl_mut().ex_data_mut(index)?.take());
    let Newcomer { chains, client, local } = newcomer.ok_or(SelectCertError::ERROR)?;
    let peer = Peer::Quic { client, local };
    match chains.find(hello.as_bytes()) {
        Ok((tls, visit)) => {
            let attached = HandshakeState::attach(hello.ssl_mut(), peer, resumption, visit);
            attached.map_err(|_: ErrorStack| SelectCertError::ERROR)?;
            tls.go_on(hello)
        }
        Err(alert) => {
            send_alert(hello.ssl(), alert);
            Err(SelectCertError::ERROR)
        }
    }
}
