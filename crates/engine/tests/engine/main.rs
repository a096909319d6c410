//! The engine from outside: what it promises to whoever submits, and to whoever brings a backend.

#![allow(clippy::unwrap_used, reason = "clippy knows the tests, but not their helpers")]

mod batch_flusher;
mod batching;
mod completion;
mod decrypt;
mod gpu;
mod half_load;
mod key_exchange;
mod keys;
mod lanes;
mod misbehaviour;
mod ml_kem;
mod openssl;
mod overflow;
mod overflow_simulation;
mod policy;
mod signatures;
mod signing_turn;
mod simulation;
mod stress;
mod support;
mod wakers;
