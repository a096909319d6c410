//! A listener's connections over QUIC: which are taken, and how each is served.

use super::{
    accept::{OpenConnection, Permit},
    connection_error::{self, ConnectionError},
    filter_chain::{AcceptingChain, ActiveListener, ChainConfig, FilterChain},
    handshake,
    serve::{self, Worker},
};
use crate::{
    admission::Visit,
    http::{self, HttpConnection},
    quic::{Code, Endpoint, Host, Link, Opening},
    telemetry::metrics,
    tls::{Arrival, ClientRejection, QuicTls},
};
use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Clients of one event loop whose handshakes are under way without proof of their addresses. Beyond, a client comes twice:
/// a flood from addresses that are made up costs no handshakes, and others a round trip.
const MOST_UNPROVEN: usize = 64;

/// For what a connection that is over still has to say.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Has an event loop's connections until the listener closes and they are gone.
pub(crate) async fn serve_datagrams(active: Arc<ActiveListener>, endpoint: Endpoint, worker: Worker) {
    let mut closing = active.quic_closing();
    let host = Listening { active, worker, closing: closing.clone(), unproven: Arc::default() };
    endpoint.run(host, async move { drop(closing.wait_for(|&closing| closing).await) }).await;
}

/// A listener on one event loop.
struct Listening {
    active: Arc<ActiveListener>,
    worker: Worker,
    closing: watch::Receiver<bool>,
    /// One reference for each client that has not proved its address, and ours.
    unproven: Arc<()>,
}

/// A connection that was taken, with everything that it counts in.
struct Admitted {
    active: Arc<ActiveListener>,
    chain: Arc<FilterChain>,
    config: Arc<ChainConfig>,
    tls: Arc<QuicTls>,
    ends: (SocketAddr, SocketAddr),
    began: Instant,
    open: (OpenConnection, Permit),
    closing: watch::Receiver<bool>,
    handshaking: (Permit, Option<Arc<()>>),
}

impl Host for Listening {
    type Admitted = Admitted;

    fn asks_for_proof(&self) -> bool {
        Arc::strong_count(&self.unproven) > MOST_UNPROVEN || self.worker.admission.is_overloaded()
    }

    fn admit(&mut self, arrival: &Arrival<'_>) -> Option<Opening<Admitted>> {
        self.worker.admission.measure();
        let began = Instant::now();
        let active = &self.active;
        let listener = active.config();
        let chain = listener.chains.first()?;
        let config = chain.config();
        let tls = config.quic.clone()?;
        // Whoever is shut out is, by any protocol; who asks for which handshake is not known yet.
        let is_proven = arrival.before_retry.is_some();
        let is_shut_out = is_proven
            && self.worker.admission.is_overloaded()
            && listener.knows_clients_by_address()
            && self.worker.admission.turns_away(arrival.client.ip(), || None);
        if is_shut_out {
            metrics::handshake_failed("refused");
            return None;
        }
        let Ok(permit) = Arc::clone(&active.connections).try_acquire_owned() else {
            metrics::datagram_dropped("limit");
            return None;
        };
        let Ok(handshaking) = Arc::clone(&active.handshakes).try_acquire_owned() else {
            active.counters.overflow.add();
            metrics::handshake_failed("too_many_handshakes");
            return None;
        };
        let visit = self.visit(arrival, began, &config);
        let connection = match tls.accept(arrival, visit) {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(%error, "a connection is lost");
                return None;
            }
        };
        chain.counters.connections.add();
        let unproven = (!is_proven).then(|| Arc::clone(&self.unproven));
        let admitted = Admitted {
            active: Arc::clone(active),
            chain: Arc::clone(chain),
            config,
            tls,
            ends: (arrival.client, arrival.local),
            began,
            open: (OpenConnection::new(active), permit),
            closing: self.closing.clone(),
            handshaking: (handshaking, unproven),
        };
        Some(Opening { connection, admitted })
    }

    fn serve(&mut self, link: Link, admitted: Admitted) {
        let worker = self.worker.clone();
        drop(tokio::spawn(async move {
            let _registered = Registered(&link);
            serve_connection(&link, admitted, &worker).await;
            let over = poll_fn(|context| link.poll_drive(context));
            let _ = tokio::time::timeout(LAST_WORDS, over).await;
        }));
    }
}

impl Listening {
    fn visit(&self, arrival: &Arrival<'_>, began: Instant, config: &ChainConfig) -> Arc<Visit> {
        let deadline = config.timeouts.handshake_deadline;
        self.worker.admission.visit(arrival.client.ip(), began, deadline)
    }
}

/// A connection that the endpoint finds for as long as somebody serves it.
struct Registered<'a>(&'a Link);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// Serves a connection until it is over, or is to be closed, which it is then.
async fn serve_connection(link: &Link, admitted: Admitted, worker: &Worker) {
    let Admitted { active, chain, config, tls, ends, began, open, closing, handshaking } = admitted;
    let limit = config.timeouts.handshake.saturating_sub(began.elapsed());
    let shaken = tokio::time::timeout(limit, poll_fn(|context| link.poll_handshake(context))).await;
    drop(handshaking);
    let failure = match shaken {
        Ok(Ok(())) if !link.with_tls(|ssl| tls.admits(ssl)) => {
            Some(ConnectionError::Rejected(ClientRejection::Pin))
        }
        Ok(Ok(())) => None,
        Ok(Err(closed)) => Some(link.with_tls(|ssl| connection_error::classify_quic(ssl, closed))),
        Err(_) => Some(ConnectionError::Timeout),
    };
    if let Some(failure) = failure {
        failure.record(ends.0, &chain);
        return link.close(Code::NoError);
    }
    metrics::quic_handshake();
    let connection = link.with_tls(|ssl| handshake::complete(ssl, &chain, &config, ends, began, None));
    let connection = serve::shared(connection, worker);
    if serve::may_connect(&config, &connection) {
        let chain = AcceptingChain {
            listener: active,
            chain,
            config,
            protocols: Vec::new(),
            quic_closing: Some(closing),
        };
        let pool = Arc::clone(&worker.pool);
        http::serve_http3(link, HttpConnection { connection, chain: Arc::new(chain), pool }).await;
    }
    link.close(Code::NoError);
    drop(open);
}
