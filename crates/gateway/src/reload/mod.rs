//! Conversion of a configuration to the state that is served, at start and at every change; unchanged parts are kept.
//!
//! - `snapshot`: builds the state from the model, or reports every problem.
//! - `cache`: artifacts of the previous snapshot, found by the input that they were made from.
//! - `watch`, `control`: changes of files, and configurations from memory.
//! - `upstream_change`, `status_source`: upstreams that change state, and the state for telemetry.

pub(crate) mod cache;
pub(crate) mod control;
#[cfg(test)]
mod leaf_tests;
pub(crate) mod snapshot;
pub(crate) mod status_source;
mod upstream_change;
pub(crate) mod watch;
