//! A load generator that is cheap per handshake: non-blocking sockets, BoringSSL, one thread for each core it is given.
//!
//! ```text
//!  Pace ── when a connection is due ──> Connection: connect, handshake (full, or with a session of an earlier
//!   closed or open loop                    one), requests one after another, close_notify and FIN
//!                                                │ latencies, what the peer really did, failures
//!                                                ▼
//!                                             Outcome
//! ```
//!
//! The server's signature in each handshake is verified, the certificate's chain once, by [`preflight`].

mod client;
mod connection;
mod offer;
mod outcome;
mod pace;
pub mod preflight;
mod response;
mod run;
mod sessions;

use self::run::Run;
pub use self::{
    client::Client,
    connection::{Failure, Stage},
    offer::{KeyChoice, Offer, TlsVersion},
    outcome::{Live, Negotiated, Outcome},
    pace::Pace,
    run::Held,
};
use std::{net::SocketAddr, num::NonZeroUsize, sync::atomic::AtomicBool, time::Duration};

/// A load: what to ask, of whom, how often, and when to stop.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub target: SocketAddr,
    /// Server names, sent as SNI and Host, in turn; at least one.
    pub names: Vec<String>,
    /// The path that is asked for.
    pub path: String,
    /// What the client offers.
    pub offer: Offer,
    /// Which part of the connections offers a session of an earlier one, 0 to 1.
    pub resumed: f64,
    /// When connections begin.
    pub pace: Pace,
    /// The most connections in flight.
    pub connections: usize,
    /// Requests on each connection; 0 is the handshake alone.
    pub requests: u32,
    /// Connections to make.
    pub count: u64,
    /// The load ends after this time, however many connections it has made, and drops those under way.
    pub time_limit: Duration,
    /// No connection begins after this time; those under way are finished, so that nothing is half done.
    pub begin_within: Option<Duration>,
    /// Ask the server to close the connection after the last response, as some clients do.
    pub server_closes: bool,
    /// A connection that takes longer has failed.
    pub connection_timeout: Duration,
}

/// Why a load cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// BoringSSL refuses a name in the offer.
    #[error("{what} `{value}`: BoringSSL knows no such thing")]
    Offer {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// The system refuses what the load needs.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
    /// BoringSSL has no memory.
    #[error("BoringSSL: {0}")]
    BoringSsl(#[from] boring::error::ErrorStack),
}

impl Load {
    /// Full handshakes with one request each, one connection in flight, a hundred in all: to be changed where more is
    /// wanted.
    pub fn new(target: SocketAddr, name: &str) -> Self {
        Self {
            target,
            names: vec![name.to_owned()],
            path: "/".to_owned(),
            offer: Offer::default(),
            resumed: 0.0,
            pace: Pace::Closed,
            connections: 1,
            requests: 1,
            count: 100,
            time_limit: Duration::from_secs(60),
            begin_within: None,
            server_closes: false,
            connection_timeout: Duration::from_secs(10),
        }
    }

    /// Makes the load. Connections that fail are counted, not returned as an error.
    pub fn run(&self) -> Result<Outcome, LoadError> {
        self.watched(&Live::default(), &AtomicBool::new(false))
    }

    /// As [`run`](Self::run); `live` can be read meanwhile, and setting `stop` ends the load with what it has got.
    pub fn watched(&self, live: &Live, stop: &AtomicBool) -> Result<Outcome, LoadError> {
        Run::new(self, &self.client()?, false)?.finish(live, stop).map(|(outcome, _)| outcome)
    }

    /// What can outlast this load: pass it to [`run_as`](Self::run_as) of this load and later ones with the same offer.
    pub fn client(&self) -> Result<Client, LoadError> {
        Client::new(self)
    }

    /// As [`run`](Self::run), with the sessions that `client` has, and leaving there what the server hands out.
    pub fn run_as(&self, client: &Client) -> Result<Outcome, LoadError> {
        let run = Run::new(self, client, false)?;
        run.finish(&Live::default(), &AtomicBool::new(false)).map(|(outcome, _)| outcome)
    }

    /// As [`watched`](Self::watched), on several threads, which share connections, count and rate.
    pub fn on_threads(
        &self,
        threads: NonZeroUsize,
        live: &Live,
        stop: &AtomicBool,
    ) -> Result<Outcome, LoadError> {
        let shares: Vec<Self> = (0..threads.get()).map(|index| self.share(index, threads.get())).collect();
        std::thread::scope(|scope| {
            let running: Vec<_> =
                shares.iter().map(|share| scope.spawn(|| share.watched(live, stop))).collect();
            let mut all = Outcome::default();
            for thread in running {
                let seen = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                all.join(&seen);
            }
            Ok(all)
        })
    }

    /// Makes the load, but leaves every connection open when it has got its responses.
    pub fn hold(&self) -> Result<(Outcome, Held), LoadError> {
        Run::new(self, &self.client()?, true)?.finish(&Live::default(), &AtomicBool::new(false))
    }

    /// What one of several threads does.
    fn share(&self, index: usize, of: usize) -> Self {
        let part = |whole: u64| whole / of as u64 + u64::from((index as u64) < whole % of as u64);
        Self {
            connections: (part(self.connections as u64) as usize).max(1),
            count: if self.count == u64::MAX { u64::MAX } else { part(self.count) },
            pace: self.pace.shared(of),
            ..self.clone()
        }
    }
}
