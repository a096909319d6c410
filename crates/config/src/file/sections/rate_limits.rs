//! Local rate limits.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::{list, put, text},
    },
    fraction,
    model::{Rate, RateLimit, RateLimitAnswer, RateLimitBy, RateLimitReply, RateLimited},
    quote,
    rate::{rate, show_rate},
    values::{count, header_name, weight},
};
use serde_json::Value;
use std::num::{NonZeroU32, NonZeroUsize};

pub(super) const RATE_LIMIT: Section<RateLimitDraft, RateLimit> = Section {
    path: "listeners[].rate_limits[]",
    about: "Local rate limits. Requests beyond a limit receive a 429 response with `Retry-After`, in any version of \
            HTTP. A request must pass all limits of its listener, and then all of its route; a limit still counts a \
            request that another limit refuses.",
    keys: &[
        Key::new(
            "rate",
            "requests and time",
            Preset::Required,
            "`10/s`, `600/m`, `5/10s`: capacity returns evenly, one request at a time.",
            |field, draft| draft.rate = field.parse(rate),
            |limit| show_rate(limit.rate).into(),
        ),
        Key::new(
            "burst",
            "count",
            Preset::Means("the number in `rate`"),
            "Maximum number of requests that may arrive at once after a pause.",
            |field, draft| draft.burst = field.parse(weight),
            |limit| limit.burst.get().into(),
        ),
        Key::new(
            "by",
            "`client`, `header NAME` or `all`",
            Preset::Is("client"),
            "The key that has a limit of its own: a network of clients (the clients behind `trusted_proxies`) \
                    or a value of a header; with `all`, all requests share one limit. Requests without the header \
                    share one too; of several lines, the first and the last are both counted. Clients that can choose \
                    the header's value evade its limit: add a limit by `client`.",
            |field, draft| draft.by = field.parse(by),
            |limit| match &limit.by {
                RateLimitBy::Header(name) => format!("header {name}").into(),
                other => other.kind().into(),
            },
        ),
        Key::new(
            "ipv4_prefix",
            "bits",
            Preset::Is("24"),
            "Prefix length of an IPv4 address that identifies a client: `32` is each address.",
            |field, draft| draft.ipv4_prefix = field.parse(|text| bits(text, 32)),
            |limit| prefixes(limit).map(|(ipv4, _)| ipv4).into(),
        ),
        Key::new(
            "ipv6_prefix",
            "bits",
            Preset::Is("56"),
            "Prefix length for IPv6, where one household has a `/56` or a `/64` of addresses.",
            |field, draft| draft.ipv6_prefix = field.parse(|text| bits(text, 128)),
            |limit| prefixes(limit).map(|(_, ipv6)| ipv6).into(),
        ),
        Key::new(
            "keys",
            "count",
            Preset::Is("65536"),
            "Maximum number of clients or values tracked at a time, in 17 bytes each, allocated at the start. \
                    Beyond that, the least active one is evicted, and starts again: a flood of addresses does not \
                    reset the limits of active clients.",
            |field, draft| draft.keys = field.parse(keys),
            |limit| (limit.by != RateLimitBy::All).then_some(limit.keys.get()).into(),
        ),
    ],
};

/// Values read for a limit.
#[derive(Default)]
pub(super) struct RateLimitDraft {
    rate: Option<Rate>,
    burst: Option<NonZeroU32>,
    by: Option<By>,
    ipv4_prefix: Option<u8>,
    ipv6_prefix: Option<u8>,
    keys: Option<NonZeroUsize>,
}

enum By {
    Client,
    Other(RateLimitBy),
}

/// Reads a list of limits; [`name`] sets their names and scopes later.
pub(super) fn rate_limits(field: &Field<'_>) -> Vec<RateLimit> {
    let mut limits = Vec::new();
    for field in field.items() {
        let Some(limit) = rate_limit(&field) else { continue };
        if limits.contains(&limit) {
            field.error(Problem::new("this limit is listed twice", "remove one"));
        }
        limits.push(limit);
    }
    limits
}

fn rate_limit(field: &Field<'_>) -> Option<RateLimit> {
    let mut draft = RateLimitDraft::default();
    RATE_LIMIT.read(field, &mut draft)?;
    let RateLimitDraft { rate, burst, by, ipv4_prefix, ipv6_prefix, keys } = draft;
    let by = match by {
        None | Some(By::Client) => RateLimitBy::Client(ipv4_prefix.unwrap_or(24), ipv6_prefix.unwrap_or(56)),
        Some(By::Other(by)) => by,
    };
    let needless: &[&str] = match &by {
        RateLimitBy::Client(..) => &[],
        RateLimitBy::Header(_) => &["ipv4_prefix", "ipv6_prefix"],
        RateLimitBy::All | RateLimitBy::Values => &["ipv4_prefix", "ipv6_prefix", "keys"],
    };
    for key in needless.iter().filter_map(|key| field.entry(key)) {
        key.error(Problem::new(
            format!("`by: {}` does not use this", by.kind()),
            "remove this, or use `by: client`",
        ));
    }
    let rate = rate?;
    let burst = burst.unwrap_or(rate.requests);
    if !RateLimit::is_served(rate, burst) {
        return field.fail(Problem::new(
            "capacity for one request would return in less than a nanosecond, or for all of them in more \
             than a year",
            "write a lower `rate`, or a lower `burst`",
        ));
    }
    Some(RateLimit {
        name: String::new(),
        scope: String::new(),
        rate,
        burst,
        of: RateLimited::All,
        by,
        keys: keys.unwrap_or(RateLimit::KEYS),
        counted: fraction::ALL,
        enforced: fraction::ALL,
        answer: RateLimitAnswer::Own,
        place: field.place(),
    })
}

/// Sets the name and the scope of limits.
pub(super) fn name(limits: &mut [RateLimit], name: &str, scope: &str) {
    for limit in limits {
        name.clone_into(&mut limit.name);
        scope.clone_into(&mut limit.scope);
    }
}

pub(super) fn show(limits: &[RateLimit]) -> Value {
    list(limits.iter().map(|limit| {
        let mut shown = RATE_LIMIT.show(limit);
        let unless_all = |parts: u32| {
            if parts == fraction::ALL { Value::Null } else { fraction::show(parts).into() }
        };
        if let RateLimitAnswer::Envoy(RateLimitReply { status, .. }) = limit.answer {
            put(&mut shown, [("status", status.into()), ("name", text(&limit.name))]);
        }
        if let RateLimited::Described(requests) = &limit.of {
            let entry = |(key, value): &(String, Option<String>)| {
                format!("{key}={}", value.as_deref().unwrap_or("*"))
            };
            let entries: Vec<_> = requests.entries.iter().map(entry).collect();
            put(&mut shown, [("descriptor", text(&entries.join(",")))]);
        }
        put(&mut shown, [("counted", unless_all(limit.counted)), ("enforced", unless_all(limit.enforced))]);
        shown
    }))
}

fn prefixes(limit: &RateLimit) -> Option<(u8, u8)> {
    match limit.by {
        RateLimitBy::Client(ipv4, ipv6) => Some((ipv4, ipv6)),
        RateLimitBy::All | RateLimitBy::Values | RateLimitBy::Header(_) => None,
    }
}

fn by(text: &str) -> Result<By, Problem> {
    match text.split_once(' ') {
        Some(("header", name)) => header_name(name.trim()).map(|name| By::Other(RateLimitBy::Header(name))),
        None if text == "client" => Ok(By::Client),
        None if text == "all" => Ok(By::Other(RateLimitBy::All)),
        _ => Err(Problem::new(
            format!("requests cannot be limited by {}", quote(text)),
            "write `client`, `all`, or `header` and the name of a header",
        )),
    }
}

fn bits(text: &str, most: u8) -> Result<u8, Problem> {
    let bits = text.parse().ok().filter(|bits| (1..=most).contains(bits));
    bits.ok_or_else(|| {
        Problem::new(format!("{} is not a prefix length", quote(text)), format!("use 1 to {most}"))
    })
}

/// Reads the number of keys, with a maximum: each limit allocates memory for all of them.
fn keys(text: &str) -> Result<NonZeroUsize, Problem> {
    match count(text)? {
        keys if keys.get() > 1 << 24 => {
            Err(Problem::new(format!("{} would take too much memory", quote(text)), "write 16777216 or less"))
        }
        keys => Ok(keys),
    }
}
