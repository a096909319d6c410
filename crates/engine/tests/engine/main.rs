//! Black-box tests of the engine: its guarantees to submitters and backends.

#![allow(clippy::unwrap_used, reason = "clippy exempts tests, but not their helpers")]

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
mod ml_dsa;
mod ml_kem;
mod openssl;
mod overflow;
mod overflow_simulation;
mod policy;
mod scarce_cpu;
mod signatures;
mod signing_turn;
mod simulation;
mod stress;
mod support;
mod wakers;
