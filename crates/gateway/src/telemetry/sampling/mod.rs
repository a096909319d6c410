//! CPU by handshake message, measured on a sample of the handshakes.
//!
//! A handshake that is not one of the sample costs a comparison. One that is has its turns on the event loop marked on the
//! thread's CPU clock (`quadrille-handshake-timing`), so that neither other connections' work counts nor the wait for the private key;
//! what a compute thread has spent on the private-key operation comes from the engine, and so does what was spent on the key
//! exchange between two turns.

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

/// Which handshakes of a listener are measured, and under which names.
pub(crate) struct Sampling {
    settings: Option<model::Sampling>,
    names: Names,
}

impl Sampling {
    /// Handshakes are counted under these names: `example.com`, `*.example.com`.
    pub(crate) fn new(settings: Option<model::Sampling>, names: impl Iterator<Item = String>) -> Self {
        Self { settings, names: Names::new(names) }
    }

    /// Whether it measures as these settings say.
    pub(crate) fn follows(&self, settings: Option<model::Sampling>) -> bool {
        self.settings == settings
    }

    /// Where to take the marks of the handshake that begins now, if it is one of the sample.
    pub(crate) fn begin(&self, ssl: &mut SslRef, now: Instant) -> Option<Marks> {
        if !sampler::should_sample(self.settings.as_ref()?, now) {
            return None;
        }
        quadrille_handshake_timing::follow(ssl);
        Some(Marks::new())
    }

    /// Adds a handshake that has succeeded to the metrics; `exchange` is CPU that the engine has spent on its key exchange.
    /// Returns what it has cost on the event loop's thread.
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

/// The future's output; each of its turns is measured, if there is somewhere to take the marks.
pub(crate) async fn measured<F: Future>(mut marks: Option<&mut Marks>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| turn(marks.as_deref_mut(), || future.as_mut().poll(context))).await
}

/// A turn of a handshake, which is measured, if there is somewhere to take the marks.
pub(crate) fn turn<T>(marks: Option<&mut Marks>, work: impl FnOnce() -> T) -> T {
    match marks {
        Some(marks) => marks.turn(work),
        None => work(),
    }
}
