//! What a server, or a client, spends on each message of a handshake.
//!
//! Client and server run in one thread and talk through memory, so that nothing but TLS is measured: no sockets, no
//! event loop. Only the turns of one side count, on the thread's CPU clock. BoringSSL tells of every message it has built
//! and of every change of its state; the time between two such moments belongs to the message that was worked on.
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

/// What one kind of handshake costs one side.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    /// Which kind.
    pub kind: HandshakeKind,
    /// Whom.
    pub side: Side,
    /// Who computes the engine's operations: `scalar` code, one at a time, or a tier of lanes in full batches.
    pub by: &'static str,
    /// Microseconds of CPU for each message, in the order of the protocol; the engine's operations not included.
    pub messages: Vec<(Message, f64)>,
    /// Microseconds of the private-key operation; 0 if there is none.
    pub key_operation: f64,
    /// Microseconds of the key exchange, of this one client alone; 0 in TLS 1.2 and for a client, where it is
    /// part of the messages.
    pub key_exchange: f64,
    /// Microseconds of a client's verification of the chain (root, intermediate, leaf); 0 for a server, and if resumed.
    pub verification: f64,
    /// Microseconds of the whole handshake, measured by itself and not as a sum.
    pub total: f64,
}

impl Costs {
    /// The sum of the parts, which differs from [`total`](Self::total) by what taking the time costs.
    pub fn sum(&self) -> f64 {
        let messages = self.messages.iter().map(|(_, microseconds)| microseconds).sum::<f64>();
        messages + self.key_operation + self.key_exchange + self.verification
    }
}

/// What `handshakes` of one kind cost `side`. Makes as many, and a tenth as many first that do not count. The figures are means over the half of
/// them that are nearest to the median, so that what disturbed some of them does not count, and that the parts belong
/// to the whole.
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
