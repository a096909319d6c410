//! What QUIC connections start with before it is known which chain they belong to: the first datagrams carry the
//! ClientHello, and BoringSSL reads it.

use super::{
    contained, context,
    handshake_state::{HandshakeState, Peer},
    quic::QuicTls,
    resumption_backend::ResumptionBackend,
    selection::{Alert, send_alert},
};
use crate::admission::Visit;
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
/// Connection ids that a client may hold, so that it can move without being followed (RFC 9000 section 5.1.1).
const MOST_CONNECTION_IDS: u64 = 8;

/// Makes connections.
pub(crate) struct QuicStart(Mutex<quiche::Config>);

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

/// Who knows the chains, and finds the one of a connection.
pub(crate) trait ChainFinder: Send + Sync {
    /// The TLS of the client's chain, by the body of its ClientHello, and what admission knows of the client; what it is told
    /// if there is none. Called once, and before anything has been computed.
    fn find(&self, hello: &[u8]) -> Result<(Arc<QuicTls>, Arc<Visit>), Alert>;
}

/// A connection of which the chain is to be found.
struct Newcomer {
    chains: Arc<dyn ChainFinder>,
    client: SocketAddr,
    local: SocketAddr,
}

/// Until it is found.
static NEWCOMER: LazyLock<Option<Index<Ssl, Option<Newcomer>>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl QuicStart {
    /// For all connections that this resumes.
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

    /// A new connection. Nothing has been read of it yet.
    ///
    /// # Errors
    /// If there is no memory for it.
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

/// Has a context's connections go on as the chain says that they are found to belong to.
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
