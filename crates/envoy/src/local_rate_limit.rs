//! The filter that limits how many requests are served in a time.

use crate::{
    fraction::runtime_fraction,
    header_changes::additions,
    reader::{Field, Message, ReadMessage},
    schema,
    status_code::status_code,
    values::number,
};
use quadrille_config::{
    Problem,
    model::{Rate, RateLimit, RateLimitAnswer, RateLimitBy, RateLimitReply},
};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

/// What Envoy takes when nothing is said.
const STATUS: u16 = 429;
/// Envoy fills no bucket faster.
const FASTEST: Duration = Duration::from_millis(50);

/// `envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit`; none if it has no bucket, or counts no request.
pub(crate) fn local_rate_limit(field: &Field<'_>) -> Option<Vec<RateLimit>> {
    let message = field.message(&schema::LOCAL_RATE_LIMIT)?;
    let changes = additions(&message, "response_headers_to_add")?;
    let status = match message.get("status") {
        Some(status) => status_code(&status)?,
        None => STATUS,
    };
    let counted = share(&message, "filter_enabled")?;
    let enforced = share(&message, "filter_enforced")?;
    let name = message.string("stat_prefix");
    let Some(bucket) = message.get("token_bucket") else { return Some(Vec::new()) };
    let (rate, burst) = token_bucket(&bucket)?;
    if counted == 0 {
        field.warn(
            "local_ratelimit off",
            "limits nothing: `filter_enabled` says no request, or is left out, which is the same",
        );
        return Some(Vec::new());
    }
    if enforced == 0 {
        field.warn(
            "local_ratelimit not enforced",
            "only counts: `filter_enforced` says no request, or is left out, which is the same",
        );
    }
    let place = field.place();
    Some(vec![RateLimit {
        name,
        scope: format!("{} {}", place.origin, place.path),
        rate,
        burst,
        by: RateLimitBy::All,
        keys: NonZeroUsize::MIN,
        counted,
        enforced,
        answer: RateLimitAnswer::Envoy(RateLimitReply {
            // As Envoy takes what is no error.
            status: if status < 400 { STATUS } else { status },
            headers: changes,
            resource_exhausted: message.flag("rate_limited_as_resource_exhausted"),
        }),
        place,
    }])
}

/// Without it, no request.
fn share(message: &Message<'_>, name: &'static str) -> Option<u32> {
    match message.get(name) {
        Some(fraction) => runtime_fraction(&fraction),
        None => Some(0),
    }
}

/// `envoy.type.v3.TokenBucket`.
fn token_bucket(field: &Field<'_>) -> Option<(Rate, NonZeroU32)> {
    let message = field.message(&schema::TOKEN_BUCKET)?;
    let burst = message.require("max_tokens")?.parse(tokens)?;
    let requests = match message.get("tokens_per_fill") {
        Some(tokens_per_fill) => tokens_per_fill.parse(tokens)?,
        None => NonZeroU32::MIN,
    };
    let interval = message.require("fill_interval")?;
    let per = crate::common::duration(&interval)?;
    if per < FASTEST {
        return interval
            .fail(Problem::new("a bucket is filled every 50 ms at most", "write `0.05s` or more"));
    }
    let rate = Rate { requests, per };
    if !RateLimit::is_served(rate, burst) {
        return field.fail(Problem::new(
            "one token would come back in less than a nanosecond, or all of them in more than a year",
            "write fewer tokens, or another `fill_interval`",
        ));
    }
    Some((rate, burst))
}

fn tokens(text: &str) -> Result<NonZeroU32, Problem> {
    NonZeroU32::new(number(text)?).ok_or_else(|| "a bucket needs tokens".into())
}
