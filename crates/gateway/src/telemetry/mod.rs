//! What is told of a running process: metrics, statistics, samples of handshakes, the access log and the status page.

pub(crate) mod access;
pub(crate) mod access_log;
pub(crate) mod history;
pub(crate) mod last_reload;
mod metric_table;
pub(crate) mod metrics;
pub(crate) mod paced;
pub(crate) mod sampling;
pub(crate) mod statistics;
pub(crate) mod status;
pub(crate) mod upstream;
