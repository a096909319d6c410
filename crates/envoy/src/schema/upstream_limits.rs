//! What bounds the requests to a cluster, and which of its servers are left out.

use super::{
    FieldPolicy::{Accepted, Ignored, Read},
    HARMLESS, Schema,
};

/// What is said of every `enforcing_...` that is read.
const ENFORCED: &str = "0 switches it off; less than 100 enforces it always";
const NO_RATES: &str = "failures in a row decide, not rates";

pub(crate) const CIRCUIT_BREAKERS: Schema = Schema {
    name: "envoy.config.cluster.v3.CircuitBreakers",
    fields: &[
        ("thresholds", Read("of the priority `DEFAULT`")),
        ("per_host_thresholds", Ignored("limits are for all servers together")),
    ],
    others: HARMLESS,
};

pub(crate) const CIRCUIT_BREAKER_THRESHOLDS: Schema = Schema {
    name: "envoy.config.cluster.v3.CircuitBreakers.Thresholds",
    fields: &[
        ("priority", Read("`HIGH` has no effect: no request has a priority")),
        (
            "max_connections",
            Read(
                "in TCP mode, for WebSockets, and for requests of clusters that speak HTTP/1.1; left out: no limit",
            ),
        ),
        ("max_pending_requests", Read("left out: no limit")),
        ("max_requests", Read("left out: no limit")),
        ("max_retries", Read("left out: no limit")),
        ("retry_budget", Ignored("`max_retries` holds")),
        ("track_remaining", Accepted("")),
        ("max_connection_pools", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const OUTLIER_DETECTION: Schema = Schema {
    name: "envoy.config.cluster.v3.OutlierDetection",
    fields: &[
        ("consecutive_5xx", Read("")),
        ("enforcing_consecutive_5xx", Read(ENFORCED)),
        ("consecutive_gateway_failure", Read("")),
        ("enforcing_consecutive_gateway_failure", Read(ENFORCED)),
        ("split_external_local_origin_errors", Read("")),
        ("consecutive_local_origin_failure", Read("")),
        ("enforcing_consecutive_local_origin_failure", Read(ENFORCED)),
        ("interval", Read("after which an ejection is forgiven; a server is back when its time is over")),
        ("base_ejection_time", Read("")),
        ("max_ejection_time", Read("")),
        ("max_ejection_percent", Read("the first server can always be left out")),
        ("max_ejection_time_jitter", Ignored("servers come back when their time is over")),
        ("enforcing_success_rate", Accepted(NO_RATES)),
        ("success_rate_minimum_hosts", Ignored(NO_RATES)),
        ("success_rate_request_volume", Ignored(NO_RATES)),
        ("success_rate_stdev_factor", Ignored(NO_RATES)),
        ("enforcing_local_origin_success_rate", Accepted(NO_RATES)),
        ("failure_percentage_threshold", Ignored(NO_RATES)),
        ("enforcing_failure_percentage", Ignored(NO_RATES)),
        ("enforcing_failure_percentage_local_origin", Ignored(NO_RATES)),
        ("failure_percentage_minimum_hosts", Ignored(NO_RATES)),
        ("failure_percentage_request_volume", Ignored(NO_RATES)),
        ("successful_active_health_check_uneject_host", Ignored("a server is back when its time is over")),
        ("always_eject_one_host", Accepted("the first server can always be left out")),
        ("monitors", Ignored("")),
    ],
    others: HARMLESS,
};
