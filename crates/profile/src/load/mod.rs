//! A load generator with low cost per handshake: non-blocking sockets, BoringSSL, one thread for each core it is
//! given.
//!
//! ```text
//!  Pace ── when a connection is due ──> Connection: connect, handshake (full, or with a session of an earlier
//!   closed or open loop                    one), sequential requests, close_notify and FIN
//!                                                │ latencies, what was negotiated, failures
//!                                                ▼
//!                                             Outcome
//! ```
//!
//! The server's signature is verified in each handshake, the certificate chain once, by [`preflight`].

mod alarm;
mod client;
mod connection;
mod error;
mod failure;
mod negotiated;
mod offer;
mod outcome;
mod pace;
mod parameters;
pub mod preflight;
mod response;
mod run;
mod sessions;

use self::run::Run;
pub use self::{
    client::Client,
    error::LoadError,
    failure::{Failure, Stage},
    negotiated::Negotiated,
    offer::{KeyChoice, Offer, TlsVersion},
    outcome::{Live, Outcome},
    pace::Pace,
    parameters::Load,
    run::Held,
};
use std::{num::NonZeroUsize, sync::atomic::AtomicBool};

impl Load {
    /// Runs the load. Failed connections are counted, not returned as an error.
    pub fn run(&self) -> Result<Outcome, LoadError> {
        self.watched(&Live::default(), &AtomicBool::new(false))
    }

    /// Like [`run`](Self::run), with `live` readable meanwhile; setting `stop` ends the load and returns the results
    /// so far.
    pub fn watched(&self, live: &Live, stop: &AtomicBool) -> Result<Outcome, LoadError> {
        Run::new(self, &self.client()?, false)?.finish(live, stop).map(|(outcome, _)| outcome)
    }

    /// Creates client state that can outlast this load: pass it to [`run_as`](Self::run_as) of this and later loads
    /// with the same offer.
    pub fn client(&self) -> Result<Client, LoadError> {
        Client::new(self)
    }

    /// Like [`run`](Self::run), with the sessions of `client`; sessions that the server issues are stored in it.
    pub fn run_as(&self, client: &Client) -> Result<Outcome, LoadError> {
        let run = Run::new(self, client, false)?;
        run.finish(&Live::default(), &AtomicBool::new(false)).map(|(outcome, _)| outcome)
    }

    /// Like [`watched`](Self::watched), on several threads, which share connections, count and rate.
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

    /// Runs the load, but leaves every connection open after its responses.
    pub fn hold(&self) -> Result<(Outcome, Held), LoadError> {
        Run::new(self, &self.client()?, true)?.finish(&Live::default(), &AtomicBool::new(false))
    }
}
