//! What is told of a running process: metrics, statistics, samples of handshakes, the access log and the status page.

pub(crate) mod access_log;
mod metric_table;
pub(crate) mod metrics;
pub(crate) mod sampling;
pub(crate) mod statistics;
pub(crate) mod status;
