//! CPU cost of a handshake for one of its sides, by message.
//!
//! BoringSSL reports every change of its state and every message that it has built. Each report is a mark on the
//! thread's CPU clock, and the time between two marks is attributed to the message in progress. A handshake that
//! waits (for the client, for its private key) has several *turns*; the time between them belongs to other work.
//!
//! ```text
//!  turn 1                                                     turn 2                         turn 3
//!  [ClientHello][ServerHello]..[Certificate][sign: submitted] [CertificateVerify][Finished]  [client's Finished]
//!              ^ state changed, or message built: a mark      ^ signature ready
//! ```
//!
//! The picture shows a server; a client's handshake has similar marks. `quadrille profile handshake` measures both
//! sides in a process of its own, and the gateway measures a sample of its handshakes.

mod clock;
mod follow;
mod marks;
mod message;

pub use clock::{process_time, reading_cost, thread_time};
pub use follow::{follow, is_followed, unfollow};
pub use marks::{Marks, Spent, key_exchange, key_operation, verification};
pub use message::Message;
