//! Circuit breakers and outlier detection of a cluster.

use crate::{
    reader::{Message, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::model::{OutlierDetection, UpstreamLimits};
use std::num::NonZeroUsize;

/// Reads the cluster's circuit breakers.
pub(crate) fn circuit_breakers(cluster: &Message<'_>) -> Option<UpstreamLimits> {
    const PRIORITIES: &[(&str, u32, bool)] = &[("DEFAULT", 0, true), ("HIGH", 1, false)];
    let mut limits = UpstreamLimits::default();
    let Some(field) = cluster.get("circuit_breakers") else { return Some(limits) };
    for thresholds in field.message(&schema::CIRCUIT_BREAKERS)?.list("thresholds") {
        let message = thresholds.message(&schema::CIRCUIT_BREAKER_THRESHOLDS)?;
        let counts = match message.get("priority") {
            Some(priority) => priority.parse(enumeration(PRIORITIES))?,
            None => true,
        };
        // Istio uses the largest number for unlimited.
        let limit =
            |name| message.number(name).filter(|limit| *limit != u32::MAX).map(|limit| limit as usize);
        let found = UpstreamLimits {
            connections: limit("max_connections").map(at_least_one),
            pending: limit("max_pending_requests"),
            requests: limit("max_requests").map(at_least_one),
            retries: limit("max_retries"),
            pending_timeout: None,
        };
        if counts {
            limits = found;
        }
    }
    Some(limits)
}

/// Envoy would allow one connection even if the limit is 0.
fn at_least_one(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)
}

/// Reads the cluster's outlier detection.
pub(crate) fn outlier_detection(cluster: &Message<'_>) -> Option<Option<OutlierDetection>> {
    let Some(field) = cluster.get("outlier_detection") else { return Some(None) };
    let message = field.message(&schema::OUTLIER_DETECTION)?;
    let preset = OutlierDetection::default();
    // Counts consecutive failures, unless the percentage disables ejection.
    let in_a_row = |count: &'static str, enforcing: &'static str, enforced: bool| {
        let count = message.number(count).unwrap_or(5);
        let enforced = message.number(enforcing).map_or(enforced, |percentage| percentage > 0);
        NonZeroUsize::new(count as usize).filter(|_| enforced)
    };
    let percent = message.number("max_ejection_percent").map(|percent| percent.min(100));
    Some(Some(OutlierDetection {
        errors: in_a_row("consecutive_5xx", "enforcing_consecutive_5xx", true),
        gateway_errors: in_a_row(
            "consecutive_gateway_failure",
            "enforcing_consecutive_gateway_failure",
            false,
        ),
        local_errors: in_a_row(
            "consecutive_local_origin_failure",
            "enforcing_consecutive_local_origin_failure",
            true,
        ),
        split: message.flag("split_external_local_origin_errors"),
        ejection: message.duration("base_ejection_time").unwrap_or(preset.ejection),
        longest_ejection: message.duration("max_ejection_time").unwrap_or(preset.longest_ejection),
        interval: message.duration("interval").unwrap_or(preset.interval),
        most: percent.and_then(|percent| u8::try_from(percent).ok()).unwrap_or(preset.most),
    }))
}
