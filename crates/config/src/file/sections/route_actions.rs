//! What becomes of requests: shares, redirects, retries.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::{PathRewrite, Redirect, RetryOn, RetryPolicy, Weighted},
    text::quote,
    values,
    words::switch,
};
use std::num::NonZeroU32;

pub(super) const SPLIT: Section = Section {
    path: "listeners[].routes[].split[]",
    about: "A share of the requests.",
    keys: &[
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Required,
            about: "The servers that get them.",
        },
        Key {
            name: "weight",
            value: "count",
            preset: Preset::Is("1"),
            about: "How many, relative to the others. Each request is decided by itself, at random.",
        },
    ],
};

pub(super) const REDIRECT: Section = Section {
    path: "listeners[].routes[].redirect",
    about: "Sends the client elsewhere. What is not said stays as it was in the request.",
    keys: &[
        Key {
            name: "scheme",
            value: "`https` or `http`",
            preset: Preset::Means("that of the request"),
            about: "`redirect: https` is short for this alone.",
        },
        Key {
            name: "host",
            value: "host",
            preset: Preset::Means("that of the request"),
            about: "Another host.",
        },
        Key {
            name: "port",
            value: "port",
            preset: Preset::Means("that of the request, unless it is the old scheme's own"),
            about: "Another port.",
        },
        Key {
            name: "path",
            value: "path",
            preset: Preset::Means("that of the request"),
            about: "Another path.",
        },
        Key {
            name: "status",
            value: "301, 302, 303, 307 or 308",
            preset: Preset::Is("301"),
            about: "Clients remember 301 and 308, and repeat a request's method and body with 307 and 308.",
        },
        Key {
            name: "strip_query",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Leave the query out.",
        },
    ],
};

pub(super) const RETRY: Section = Section {
    path: "listeners[].routes[].retry",
    about: "Which failures are tried again, in place of the upstream's `retries`. A request is repeated while its body, of \
            up to 64 KiB, is still there.",
    keys: &[
        Key {
            name: "on",
            value: "list of `connect-failure`, `refused-stream`, `reset`, `gateway-error`, `5xx`, `conflict`, statuses",
            preset: Preset::Required,
            about: "No connection; refused by HTTP/2; no answer; 502 to 504 or no answer; 500 and above or no answer; 409; \
                    these.",
        },
        Key {
            name: "retries",
            value: "count",
            preset: Preset::Is("1"),
            about: "Attempts after the first, each after a short pause that grows. More of them make an overload worse.",
        },
        Key {
            name: "per_try_timeout",
            value: "duration",
            preset: Preset::Means("none of its own"),
            about: "How long one attempt may take.",
        },
        Key {
            name: "idempotent_only",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Repeat a request that a server may have seen only if its method allows it (RFC 9110). `off` may do \
                    twice what a client asked for once.",
        },
    ],
};

/// The shares of several upstreams.
pub(super) fn split(field: &Field<'_>, upstreams: &[&str]) -> Vec<Weighted> {
    let share = |field: &Field<'_>| {
        let keys = field.mapping(&SPLIT)?;
        let upstream = keys.require("upstream").and_then(|field| field.name_among(upstreams, "upstream"));
        let mut weight = NonZeroU32::MIN;
        keys.update("weight", &mut weight, values::weight);
        Some(Weighted { weight, ..Weighted::all(upstream?) })
    };
    field.items().iter().filter_map(share).collect()
}

/// Where clients are sent.
pub(super) fn redirect(field: &Field<'_>) -> Option<Redirect> {
    if field.is_scalar() {
        let scheme = field.parse(values::scheme)?;
        return Some(Redirect { scheme: Some(scheme), ..Redirect::https() });
    }
    let keys = field.mapping(&REDIRECT)?;
    let mut redirect = Redirect {
        scheme: keys.read("scheme", values::scheme),
        host: keys.read("host", values::host),
        port: keys.read("port", values::port),
        path: keys.read("path", values::path).map(PathRewrite::Full),
        ..Redirect::https()
    };
    keys.update("status", &mut redirect.status, values::redirect_status);
    keys.update("strip_query", &mut redirect.strip_query, switch);
    let stays = redirect.scheme.is_none() && redirect.host.is_none() && redirect.port.is_none();
    if stays
        && redirect.path.is_none()
        && ["scheme", "host", "port", "path"].iter().all(|key| keys.get(key).is_none())
    {
        field.error("the client would be sent to where it is; add `scheme`, `host`, `port` or `path`");
    }
    Some(redirect)
}

/// Which failures are tried again.
pub(super) fn retry(field: &Field<'_>) -> Option<RetryPolicy> {
    let keys = field.mapping(&RETRY)?;
    let on = keys.require("on")?;
    let mut policy =
        RetryPolicy { on: RetryOn::default(), retries: 1, per_try_timeout: None, idempotent_only: true };
    for item in on.items() {
        let _ = item.parse(|text| failure(&mut policy.on, text));
    }
    keys.update("retries", &mut policy.retries, |text| values::weight(text).map(NonZeroU32::get));
    policy.per_try_timeout = keys.read("per_try_timeout", values::timeout);
    keys.update("idempotent_only", &mut policy.idempotent_only, switch);
    Some(policy)
}

fn failure(on: &mut RetryOn, text: &str) -> Result<(), String> {
    match text {
        "connect-failure" => on.connect_failure = true,
        "refused-stream" => on.refused_stream = true,
        "reset" => on.reset = true,
        "gateway-error" => on.gateway_error = true,
        "5xx" => on.server_error = true,
        "conflict" => on.conflict = true,
        _ => on.statuses.push(values::status(text).map_err(|_| {
            format!(
                "{} is no failure; known are `connect-failure`, `refused-stream`, `reset`, `gateway-error`, `5xx`, \
                 `conflict` and statuses",
                quote(text)
            )
        })?),
    }
    Ok(())
}
