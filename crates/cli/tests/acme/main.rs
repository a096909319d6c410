//! ACME certificates, with Let's Encrypt's test authority (pebble), which validates names by connecting to the
//! gateway.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod authority;
mod failures;
mod first;
mod fleet;
mod front;
mod garbage;
mod impostor;
mod keyless;
mod killed;
mod on_demand;
mod operator;
mod renewal;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the gateway's tests use all of it")]
mod support;
