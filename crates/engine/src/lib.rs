//! Engine for private-key operations, which are computed outside the connection's path.
//!
//! ```text
//!  connections, certificates, workers          Completion (a plain future)
//!        │ submit(key, operation)                       ▲
//!        ▼                                              │ checked with the public key
//!  one queue for each key type ──> Policy ──> compute threads ──> Backend
//!        bounded, withdrawable      pure          (lanes or scalar)
//!        └── operations that would wait too long ──> Overflow (a GPU)
//! ```
//!
//! The engine collects operations from all threads, computes several at once where the [`Backend`] can, and returns
//! each result to the future that waits for it. It needs no async runtime and opens no sockets, and so works in a
//! gateway, in a key server, and inside foreign event loops. It also computes responses to clients' key shares in
//! batches, on the event loop's own thread (`key_exchange`).
//!
//! It is not a TLS library and not a key store: it uses keys that are already in memory, and passes operations of
//! other keys to the component that has access to them ([`ExternalKey`]).
//!
//! # Files
//!
//! - `engine`, `key`, `operation`, `completion`: the interface; `ticket`, `job`: an operation in progress.
//! - `ml_dsa`: private keys of ML-DSA.
//! - `shared`, `queue`, `compute`, `delivery`: from the queue to the result, which `verify` checks.
//! - `policy`, `load`: when a batch starts, by queue length, CPU scarcity and arrival rate.
//! - `external`, `external_ticket`: keys that are not in memory, such as in tokens of PKCS#11, and their operations.
//! - `backend`, `scalar_backend`, `lanes`: backends. `lanes` measures at start from which number of operations
//!   lanes are cheaper, and whether AWS-LC is faster for a lone RSA operation.
//! - `overflow`, `overflow_threads`, `gpu`: the end of a queue that is too long for the backend, or for scarce CPU,
//!   computed by a GPU; it returns to the queue if the GPU fails.
//! - `batch_flusher`, `turn_end`, `signing_turn`: operations of one turn of an event loop, submitted or signed
//!   together.
//! - `key_exchange`, `key_agreement`: key shares of one turn; below it, X25519, ML-KEM-768 and P-256.

mod aws_lc;
mod backend;
mod batch_flusher;
mod batching;
mod completion;
mod compute;
mod delivery;
mod engine;
mod error;
mod external;
mod external_ticket;
mod gpu;
mod installed;
mod job;
mod key;
mod key_agreement;
mod key_exchange;
mod key_form;
mod key_type;
mod lanes;
mod load;
mod lone_p256;
mod ml_dsa;
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
pub use external::{ExternalKey, ExternalOperation};
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
pub use quadrille_kernels::MlDsa;
pub use quadrille_kernels_cuda::{Options as GpuOptions, Unavailable as GpuUnavailable};
pub use scalar_backend::Scalar;
pub use scheme::SignatureScheme;
pub use settings::Settings;
pub use ticket::Outcome;
pub use zeroize::Zeroizing;
