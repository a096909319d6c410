//! Rate limit headers for clients.

use super::grpc::{DescriptorStatus, Header};
use http::{HeaderMap, HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Adds the remaining quota of the nearest limit, and the list of limits (draft-polli-ratelimit-headers-03).
pub(super) fn remaining(statuses: &[DescriptorStatus], headers: &mut HeaderMap) {
    let limits = || statuses.iter().filter_map(|status| Some((status, status.current_limit.as_ref()?)));
    let Some((nearest, limit)) = limits().min_by_key(|(status, _)| status.limit_remaining) else { return };
    let policies: String = limits()
        .filter_map(|(_, limit)| {
            let window = seconds(limit.unit)?;
            let name =
                if limit.name.is_empty() { String::new() } else { format!(";name=\"{}\"", limit.name) };
            Some(format!(", {};w={window}{name}", limit.requests_per_unit))
        })
        .collect();
    if let Ok(value) = HeaderValue::try_from(format!("{}{policies}", limit.requests_per_unit)) {
        headers.append(LIMIT, value);
    }
    headers.append(REMAINING, nearest.limit_remaining.into());
    let reset = nearest.duration_until_reset.map_or(0, |time| time.seconds);
    headers.append(RESET, reset.into());
}

/// Returns the length in seconds of a unit of `RateLimitResponse.RateLimit`.
fn seconds(unit: i32) -> Option<u32> {
    const DAY: u32 = 24 * 3600;
    Some(match unit {
        1 => 1,
        2 => 60,
        3 => 3600,
        4 => DAY,
        5 => 30 * DAY,
        6 => 365 * DAY,
        7 => 7 * DAY,
        _ => return None,
    })
}

/// Returns the service's headers that may be sent.
pub(super) fn sendable(of_service: &[Header]) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    of_service.iter().filter_map(|header| {
        let name = HeaderName::try_from(&header.key).ok()?;
        let value = HeaderValue::from_bytes(header.value()).ok()?;
        (!crate::http::filter::service_call::is_fixed(&name)).then_some((name, value))
    })
}
