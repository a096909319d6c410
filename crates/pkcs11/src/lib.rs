//! Private keys in PKCS#11 tokens: hardware security modules, smart cards, and SoftHSM.
//!
//! ```text
//!  engine ── ExternalOperation ──> TokenKey ──> pool: bounded queue ──> threads, each with a session ──> module (C)
//!                 ▲                               │ deadlines                      │ opened, logged in, and
//!                 └── checked with the public key ┴────────────────────────────────┘ opened again after a reset
//! ```
//!
//! A token is slow, shared, and may hang inside the vendor's library, where nothing can interrupt it. Its operations
//! therefore run on threads of their own, and fail after a deadline; the caller then uses another key server or a
//! fallback. When every thread of a token hangs, further operations fail at once. The crate has no event loop and opens
//! no socket.
//!
//! - `key`: a key as the engine uses it; `token`: the token of several keys, and its thread pool.
//! - `pool`: threads with deadlines, without knowledge of PKCS#11.
//! - `connection`: a thread's session; `login`, `pin`: one attempt for each PIN; `module`: the vendor's library.
//! - `objects`: keys and their public halves in a token; `mechanism`: operations in PKCS#11's terms.
//! - `error`: failures by cause, each with its remedy; `metrics`.

mod connection;
mod error;
mod key;
mod login;
mod mechanism;
mod metrics;
mod module;
mod objects;
mod pin;
mod pool;
mod token;

pub use error::TokenError;
pub use key::{Loaded, load};
pub use objects::TokenObject;
pub use token::list;
