//! Private-key operations, taken out of the connection's path.
//!
//! ```text
//!  connections, certificates, workers          Completion (a plain future)
//!        │ submit(key, operation)                       ▲
//!        ▼                                              │ checked with the public key
//!  one queue for each key type ──> Policy ──> compute threads ──> Backend
//!        bounded, withdrawable      pure          (lanes or scalar)
//!        └── what would wait too long ──> Overflow (a GPU)
//! ```
//!
//! The engine collects operations from everywhere, computes several at once where the [`Backend`] can, and hands each
//! result back to the future that waits for it. It needs no async runtime and opens no sockets, so that it works in
//! a gateway, in a key server, and inside other people's event loops. It answers clients' key shares in batches too, on
//! the event loop's own thread (`key_exchange`).
//!
//! It is not a TLS library and not a key store: it takes keys that are already in memory.

mod aws_lc;
mod backend;
mod batch_flusher;
mod batching;
mod completion;
mod compute;
mod delivery;
mod engine;
mod error;
mod gpu;
mod installed;
mod job;
mod key;
mod key_agreement;
mod key_exchange;
mod key_type;
mod lanes;
mod load;
mod lone_p256;
mod observer;
mod operation;
pub mod overflow;
mod overflow_threads;
pub mod policy;
mod prepared;
mod priority;
mod public;
mod queue;
pub mod rsa_padding;
mod scalar;
mod scalar_backend;
mod scheme;
mod settings;
mod shared;
mod signing_turn;
mod ticket;
mod turn_end;
mod verify;

pub use backend::Backend;
pub use batch_flusher::BatchFlusher;
pub use batching::{Batching, Prices};
pub use completion::Completion;
pub use engine::Engine;
pub use error::{ExchangeError, KeyError, OperationError};
pub use gpu::Gpu;
pub use job::Job;
pub use key::Key;
pub use key_agreement::{
    ClientShare, EncapsulateOperation, ExchangeOperation, ExchangeReport, Group, MlKem768, MlKem768KeyPair,
    P256, P256KeyPair, P256SecretOperation, SecretOperation, ServerShare, X25519, X25519KeyPair, x25519,
};
pub use key_exchange::Exchange;
pub use key_type::KeyType;
pub use lanes::{CEILING_VARIABLE, Ceiling, Lanes, UnknownTier, fastest, fastest_up_to, tier};
pub use load::{Arrivals, Load};
pub use observer::{BatchReport, Depth, Observer, Unobserved};
pub use operation::Operation;
pub use overflow::Overflow;
pub use policy::Policy;
pub use priority::Priority;
pub use public::PublicKey;
pub use quadrille_kernels_cuda::{Options as GpuOptions, Unavailable as GpuUnavailable};
pub use scalar_backend::Scalar;
pub use scheme::SignatureScheme;
pub use settings::Settings;
pub use ticket::Outcome;
pub use zeroize::Zeroizing;
