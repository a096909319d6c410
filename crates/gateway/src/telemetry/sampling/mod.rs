//! CPU time by handshake message, measured for a sample of the handshakes.
//!
//! A handshake outside the sample costs a comparison. Each turn of a sampled handshake on the event loop is marked on
//! the thread's CPU clock (`quadrille-handshake-timing`), which excludes the work of other connections and the wait
//! for the private key. The engine reports the CPU time of a compute thread for the private-key operation, and that
//! for the key exchange between two turns.

mod names;
mod record;
mod sampler;

use crate::connection::Connection;
use boring::ssl::SslRef;
use names::Names;
use quadrille_config::model;
use quadrille_handshake_timing::Marks;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::{Duration, Instant},
};

/// Sampling of a listener's handshakes, with the names under which they are counted.
pub(crate) struct Sampling {
    settings: Option<model::Sampling>,
    names: Names,
}

impl Sampling {
    /// Creates the sampling. Handshakes are counted under these names: `example.com`, `*.example.com`.
    pub(crate) fn new(settings: Option<model::Sampling>, names: impl Iterator<Item = String>) -> Self {
        Self { settings, names: Names::new(names) }
    }

    /// Returns whether it has these settings.
    pub(crate) fn follows(&self, settings: Option<model::Sampling>) -> bool {
        self.settings == settings
    }

    /// Begins a handshake, and returns its marks if it is sampled.
    pub(crate) fn begin(&self, ssl: &mut SslRef, now: Instant) -> Option<Marks> {
        if !sampler::should_sample(self.settings.as_ref()?, now) {
            return None;
        }
        quadrille_handshake_timing::follow(ssl);
        Some(Marks::new())
    }

    /// Adds a successful handshake to the metrics; `exchange` is the engine's CPU time for its key exchange. Returns
    /// the CPU time on the event loop's thread.
    pub(crate) fn record(
        &self,
        marks: &Marks,
        ssl: &mut SslRef,
        connection: &Connection,
        exchange: Option<Duration>,
    ) -> Option<Duration> {
        quadrille_handshake_timing::unfollow(ssl);
        record::record(marks, self.names.label(connection.sni.as_deref()), connection, exchange)
    }
}

/// Awaits a future; each of its turns is measured if there are marks.
pub(crate) async fn measured<F: Future>(mut marks: Option<&mut Marks>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| turn(marks.as_deref_mut(), || future.as_mut().poll(context))).await
}

/// Runs a turn of a handshake, which is measured if there are marks.
pub(crate) fn turn<T>(marks: Option<&mut Marks>, work: impl FnOnce() -> T) -> T {
    match marks {
        Some(marks) => marks.turn(work),
        None => work(),
    }
}
