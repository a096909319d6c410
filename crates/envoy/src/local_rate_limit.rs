//! The local rate limit filter.

use crate::{
    descriptor::{descriptors_of_filter, host_descriptors, read_stage},
    fraction::runtime_fraction,
    header_changes::additions,
    reader::{Field, Message, ReadMessage},
    schema,
    status_code::status_code,
    values::number,
};
use quadrille_config::{
    Problem,
    model::{
        DescribedRequests, MadeDescriptors, Place, Rate, RateLimit, RateLimitAnswer, RateLimitBy,
        RateLimitReply, RateLimited,
    },
};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

/// Envoy's default status.
const STATUS: u16 = 429;
/// Default number of dynamic descriptors with their own bucket.
const DYNAMIC: NonZeroUsize = NonZeroUsize::MIN.saturating_add(19);
/// Envoy's minimum fill interval.
const FASTEST: Duration = Duration::from_millis(50);

/// Reads `envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit`; empty if it has no buckets, or is
/// disabled.
pub(crate) fn local_rate_limit(field: &Field<'_>) -> Option<Vec<RateLimit>> {
    let message = field.message(&schema::LOCAL_RATE_LIMIT)?;
    let changes = additions(&message, "response_headers_to_add")?;
    let status = match message.get("status") {
        Some(status) => status_code(&status)?,
        None => STATUS,
    };
    let counted = share(&message, "filter_enabled")?;
    let enforced = share(&message, "filter_enforced")?;
    let answer = RateLimitAnswer::Envoy(RateLimitReply {
        // As in Envoy, a status that is not an error is replaced.
        status: if status < 400 { STATUS } else { status },
        headers: changes,
        resource_exhausted: message.flag("rate_limited_as_resource_exhausted"),
    });
    let limit = |bucket: Bucket| RateLimit {
        name: message.string("stat_prefix"),
        scope: format!("{} {}", bucket.place.origin, bucket.place.path),
        rate: bucket.rate,
        burst: bucket.burst,
        of: bucket.of,
        by: bucket.by,
        keys: bucket.keys,
        counted,
        enforced: if bucket.only_counts { 0 } else { enforced },
        answer: answer.clone(),
        place: bucket.place,
    };
    let mut limits: Vec<_> = described(&message)?.into_iter().map(limit).collect();
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.rate.period()));
    if let Some(bucket) = message.get("token_bucket") {
        let always = message.get("always_consume_default_token_bucket");
        let of = match always.is_none() || message.flag("always_consume_default_token_bucket") {
            true => RateLimited::All,
            false => RateLimited::Others,
        };
        limits.push(limit(Bucket::of(&bucket, field.place(), of)?));
    }
    if limits.is_empty() {
        return Some(limits);
    }
    if counted == 0 {
        field.warn(
            "local_ratelimit off",
            "no effect: `filter_enabled` is zero or omitted, which selects no requests",
        );
        return Some(Vec::new());
    }
    if enforced == 0 {
        field.warn(
            "local_ratelimit not enforced",
            "only counts: `filter_enforced` is zero or omitted, which enforces no requests",
        );
    }
    Some(limits)
}

/// A token bucket, and the requests that it limits.
struct Bucket {
    rate: Rate,
    burst: NonZeroU32,
    of: RateLimited,
    by: RateLimitBy,
    keys: NonZeroUsize,
    only_counts: bool,
    place: Place,
}

impl Bucket {
    /// Reads a bucket shared by all these requests.
    fn of(field: &Field<'_>, place: Place, of: RateLimited) -> Option<Self> {
        let (rate, burst) = token_bucket(field)?;
        let (by, keys) = (RateLimitBy::All, NonZeroUsize::MIN);
        Some(Self { rate, burst, of, by, keys, only_counts: false, place })
    }
}

/// Reads the buckets of descriptors.
fn described(message: &Message<'_>) -> Option<Vec<Bucket>> {
    let own = descriptors_of_filter(message)?;
    if own.iter().any(|descriptor| descriptor.hits.is_some()) {
        return message.field().fail("`hits_addend` is refused: each request uses one token here");
    }
    let made = Arc::new(MadeDescriptors {
        own,
        stage: message.get("stage").map_or(Some(0), |stage| stage.parse(read_stage))?,
        host: host_descriptors(message)?,
    });
    let keys = match message.get("max_dynamic_descriptors") {
        Some(count) => count.parse(tokens)?.try_into().unwrap_or(DYNAMIC),
        None => DYNAMIC,
    };
    let buckets = message.list("descriptors").into_iter().map(|field| of_descriptor(&field, &made, keys));
    buckets.collect::<Vec<_>>().into_iter().collect()
}

/// Reads `envoy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor`.
fn of_descriptor(field: &Field<'_>, made: &Arc<MadeDescriptors>, keys: NonZeroUsize) -> Option<Bucket> {
    let message = field.message(&schema::LOCAL_DESCRIPTOR)?;
    let entry = |field: &Field<'_>| {
        let entry = field.message(&schema::DESCRIPTOR_ENTRY)?;
        let value = entry.string("value");
        Some((entry.require("key")?.text()?.to_owned(), (!value.is_empty()).then_some(value)))
    };
    let entries = message.list("entries").iter().map(entry).collect::<Option<Vec<_>>>()?;
    if entries.is_empty() {
        return field.fail("`entries` is missing");
    }
    let is_dynamic = entries.iter().any(|(_, value)| value.is_none());
    let requests = DescribedRequests { entries, made: Arc::clone(made) };
    let of = RateLimited::Described(Arc::new(requests));
    let bucket = Bucket::of(&message.require("token_bucket")?, field.place(), of)?;
    let only_counts = message.flag("shadow_mode");
    Some(match is_dynamic {
        true => Bucket { by: RateLimitBy::Values, keys, only_counts, ..bucket },
        false => Bucket { only_counts, ..bucket },
    })
}

/// Reads a fraction; zero if omitted.
fn share(message: &Message<'_>, name: &'static str) -> Option<u32> {
    match message.get(name) {
        Some(fraction) => runtime_fraction(&fraction),
        None => Some(0),
    }
}

/// Reads `envoy.type.v3.TokenBucket`.
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
        return interval.fail(Problem::new("the minimum fill interval is 50 ms", "write at least `0.05s`"));
    }
    let rate = Rate { requests, per };
    if !RateLimit::is_served(rate, burst) {
        return field.fail(Problem::new(
            "refilling takes less than a nanosecond per token, or more than a year for all",
            "use fewer tokens, or another `fill_interval`",
        ));
    }
    Some((rate, burst))
}

fn tokens(text: &str) -> Result<NonZeroU32, Problem> {
    NonZeroU32::new(number(text)?).ok_or_else(|| "a bucket requires tokens".into())
}
