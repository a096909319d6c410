//! Cost of each handshake message for a server or a client.
//!
//! Client and server run in one thread and communicate through memory, so that only TLS is measured: no sockets, no
//! event loop. Only the turns of one side count, on the thread's CPU clock. BoringSSL reports every message that it
//! has built and every change of its state; the time between two reports belongs to the message being processed.
//!
//! ```text
//!  client ── ClientHello ──> server: [ClientHello][ServerHello][EncryptedExtensions][Certificate][CertificateVerify][Finished]
//!                                      ^ message built, or state changed: a mark on the CPU clock
//! ```

mod chain;
mod endpoints;
mod error;
mod exchange;
mod full_batch;
mod key;
mod kind;
mod pipe;

use endpoints::{Endpoints, Seen};
pub use error::Error;
pub use full_batch::FullBatch;
pub use kind::{HandshakeKind, Side, Suite};
pub use quadrille_handshake_timing::Message;
use serde::Serialize;
use std::{collections::BTreeSet, time::Duration};

/// Costs of one kind of handshake for one side.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    /// The kind of handshake.
    pub kind: HandshakeKind,
    /// The measured side.
    pub side: Side,
    /// Implementation of the engine's operations: `scalar` code, one at a time, or a tier of lanes in full batches.
    pub by: &'static str,
    /// Microseconds of CPU for each message, in protocol order, without the engine's operations.
    pub messages: Vec<(Message, f64)>,
    /// Microseconds of the private-key operation; 0 without one.
    pub key_operation: f64,
    /// Microseconds of the key exchange, for this one client alone; 0 in TLS 1.2 and for a client, where it is part
    /// of the messages.
    pub key_exchange: f64,
    /// Microseconds of a client's verification of the chain (root, intermediate, leaf); 0 for a server, and if
    /// resumed.
    pub verification: f64,
    /// Microseconds of the whole handshake, measured separately and not as a sum.
    pub total: f64,
}

impl Costs {
    /// Returns the sum of the parts, which differs from [`total`](Self::total) by the cost of reading the clock.
    pub fn sum(&self) -> f64 {
        let messages = self.messages.iter().map(|(_, microseconds)| microseconds).sum::<f64>();
        messages + self.key_operation + self.key_exchange + self.verification
    }
}

/// Measures `handshakes` of one kind for `side`, after a warm-up of a tenth as many. The figures are means over the
/// half of them that are nearest to the median, so that disturbed handshakes do not count and the parts belong to the
/// whole.
pub fn measure(kind: HandshakeKind, side: Side, handshakes: usize) -> Result<Costs, Error> {
    let mut ends = Endpoints::new(kind, side)?;
    for _ in 0..handshakes / 10 + 2 {
        ends.shake_hands()?;
    }
    let mut seen: Vec<Seen> = (0..handshakes.max(1)).map(|_| ends.shake_hands()).collect::<Result<_, _>>()?;
    seen.sort_by_key(|seen| seen.total);
    let middle = &seen[seen.len() / 4..(seen.len() * 3).div_ceil(4)];
    let mean = |time: &dyn Fn(&Seen) -> Duration| {
        middle.iter().map(|seen| time(seen).as_secs_f64() * 1e6).sum::<f64>() / middle.len() as f64
    };
    let messages: BTreeSet<Message> =
        middle.iter().flat_map(|seen| seen.messages.iter().map(|(message, _)| *message)).collect();
    let of = |wanted: Message| {
        mean(&|seen| {
            let times = seen.messages.iter().filter(|(message, _)| *message == wanted);
            times.map(|(_, time)| *time).sum()
        })
    };
    Ok(Costs {
        kind,
        side,
        by: "scalar",
        messages: messages.into_iter().map(|message| (message, of(message))).collect(),
        key_operation: mean(&|seen| seen.key_operation),
        key_exchange: mean(&|seen| seen.key_exchange),
        verification: mean(&|seen| seen.verification),
        total: mean(&|seen| seen.total),
    })
}
