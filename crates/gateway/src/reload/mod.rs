//! From a configuration to what is served, at start and whenever it changes: what has not changed is kept.

pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod control;
#[cfg(test)]
mod leaf_tests;
pub(crate) mod served;
mod upstream_change;
pub(crate) mod watch;
