//! Telemetry of a running process: metrics, statistics, samples of handshakes, the access log and the status page.
//!
//! - `metrics`, described once in `metric_table`; `upstream`, `access_denied`, `memory`: metrics of
//!   upstreams, of access and of memory.
//! - `statistics`, `upstream_counts`: counts by listener, filter chain and upstream; `labels`: labels of metrics; `sampling`: CPU time by handshake message.
//! - `status`, `last_reload`, `configuration_warnings`, `history`: the state that is served, the result of the last
//!   reload, warnings about the configuration, the last hour; `expiry`: what expires of it.
//! - `access_log`, with `access_line` for lines with a format, `rate_limited_log`, `server_warnings`, `log_level`: logs.

pub(crate) mod access_denied;
mod access_line;
pub(crate) mod access_log;
pub(crate) mod configuration_warnings;
pub(crate) mod expiry;
pub(crate) mod history;
mod labels;
pub(crate) mod last_reload;
pub(crate) mod log_level;
pub(crate) mod memory;
mod metric_table;
pub(crate) mod metrics;
pub(crate) mod rate_limited_log;
pub(crate) mod sampling;
pub(crate) mod server_warnings;
pub(crate) mod statistics;
pub(crate) mod status;
pub(crate) mod upstream;
mod upstream_counts;
