//! Circuit breakers and outlier detection.

use super::{
    FieldPolicy::{Accepted, Ignored, Read},
    HARMLESS, Schema,
};

/// Note on every `enforcing_...` field that is read.
const ENFORCED: &str = "0 disables it; other values always enforce it";
const NO_RATES: &str = "only consecutive failures are counted";

pub(crate) const CIRCUIT_BREAKERS: Schema = Schema {
    name: "envoy.config.cluster.v3.CircuitBreakers",
    fields: &[
        ("thresholds", Read("for the priority `DEFAULT`")),
        ("per_host_thresholds", Ignored("limits apply to all endpoints together")),
    ],
    others: HARMLESS,
};

pub(crate) const CIRCUIT_BREAKER_THRESHOLDS: Schema = Schema {
    name: "envoy.config.cluster.v3.CircuitBreakers.Thresholds",
    fields: &[
        ("priority", Read("`HIGH` has no effect: requests have no priority")),
        (
            "max_connections",
            Read("in TCP mode, for WebSockets, and for requests of HTTP/1.1 clusters; unlimited if omitted"),
        ),
        ("max_pending_requests", Read("unlimited if omitted")),
        ("max_requests", Read("unlimited if omitted")),
        ("max_retries", Read("unlimited if omitted")),
        ("retry_budget", Ignored("`max_retries` applies")),
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
        (
            "interval",
            Read("time after which an ejection is forgotten; endpoints return when their ejection is over"),
        ),
        ("base_ejection_time", Read("")),
        ("max_ejection_time", Read("")),
        ("max_ejection_percent", Read("the first endpoint can always be ejected")),
        ("max_ejection_time_jitter", Ignored("endpoints return when their ejection time is over")),
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
        (
            "successful_active_health_check_uneject_host",
            Ignored("endpoints return when their ejection time is over"),
        ),
        ("always_eject_one_host", Accepted("the first endpoint can always be ejected")),
        ("monitors", Ignored("")),
    ],
    others: HARMLESS,
};
