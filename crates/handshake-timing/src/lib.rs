//! What a handshake costs one of its sides, message by message.
//!
//! BoringSSL tells of every change of its state and of every message that it has built. Each such moment is a mark on
//! the thread's CPU clock, and the time between two marks belongs to the message that was worked on. A handshake that
//! waits (for the client, for its private key) has several *turns*; what happens between them is somebody else's time.
//!
//! ```text
//!  turn 1                                                     turn 2                         turn 3
//!  [ClientHello][ServerHello]..[Certificate][sign: handed in] [CertificateVerify][Finished]  [client's Finished]
//!              ^ state changed, or message built: a mark      ^ the signature has come
//! ```
//!
//! The picture is a server's; a client's handshake has marks at the same kinds of moments. `quadrille profile handshake`
//! measures both sides in a process of its own, and the gateway on a sample of its handshakes.

mod clock;
mod follow;
mod marks;
mod message;

pub use clock::{process_time, reading_cost, thread_time};
pub use follow::{follow, unfollow};
pub use marks::{Marks, Spent, key_exchange, key_operation, verification};
pub use message::Message;
