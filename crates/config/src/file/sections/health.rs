//! Active health checks.

use super::{text_match::without_frame, value_conditions};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    model::{Health, HealthProbe, HttpProbe, TextMatch, TextRule, Upstream, UpstreamProtocol},
    quote,
    values::{self, count, path, timeout},
};
use http::{Method, uri::Authority};
use serde_json::Value;

pub(super) const HEALTH: Section<Health> = Section {
    path: "upstreams.<name>.health",
    about: "Active health checks. `on` checks with the defaults; each check is a new connection to the server.",
    keys: &[
        Key::new(
            "path",
            "path",
            Preset::Means("no request: a connection is enough"),
            "A server is healthy if it responds to a request for this path with one of the `statuses`; without it, if \
                    a connection can be opened.",
            |field, health| {
                field.set(&mut health.probe, |text| Ok(HealthProbe::Http(HttpProbe::get(path(text)?))));
            },
            |health| show_request(health, |probe| probe.path.as_str().into()),
        ),
        Key::new(
            "grpc",
            "`on`, or name of a service",
            Preset::Is("off"),
            "In place of `path`: a server is healthy if its gRPC health service (`grpc.health.v1.Health/Check`) \
                    reports `SERVING` for this service, or, with `on`, for the whole server. For upstreams with \
                    `protocol: http2`, or `auto` and `tls`.",
            |field, health| {
                if let Some(probe) = field.text().and_then(grpc) {
                    health.probe = probe;
                }
            },
            |health| show_service(&health.probe),
        ),
        Key::new(
            "method",
            "method",
            Preset::Is("GET"),
            "The method of the request, such as `HEAD`. With `path`.",
            |field, health| change_request(field, health, |probe| field.set(&mut probe.method, method)),
            |health| show_request(health, |probe| probe.method.as_str().into()),
        ),
        Key::new(
            "host",
            "host, with a port or without",
            Preset::Means("`tls.server_name`, or the host of the server's address"),
            "The `Host` of the request, or its `:authority`; servers with several sites respond for this one. With \
                    `path` or `grpc`.",
            read_host,
            show_host,
        ),
        Key::new(
            "statuses",
            "list of statuses and ranges",
            Preset::Is("[200]"),
            "Statuses of healthy servers, such as `[200-299, 401]`. With `path`. Redirects are not followed.",
            |field, health| {
                change_request(field, health, |probe| {
                    probe.statuses = field.items().iter().filter_map(|item| item.parse(statuses)).collect();
                });
            },
            |health| show_request(health, |probe| probe.statuses.iter().map(show_statuses).collect()),
        ),
        Key::new(
            "body",
            "text",
            Preset::Means("any"),
            "The text that the body of the response contains in its first 64 KiB. With `path`.",
            |field, health| {
                change_request(field, health, |probe| {
                    let rule = field.text().map(|text| TextRule::Contains(text.to_owned()));
                    probe.body = rule.map(|rule| TextMatch { rule, ignore_case: false });
                });
            },
            |health| show_body(health, |rule| matches!(rule, TextRule::Contains(_))),
        ),
        Key::new(
            "body_regex",
            "regular expression",
            Preset::Means("any"),
            "In place of `body`: the expression, in the syntax of RE2, that the first 64 KiB of the body match as a \
                    whole, such as `(?s).*\"status\": *\"up\".*`; `(?s)` lets `.` match line breaks.",
            |field, health| {
                change_request(field, health, |probe| {
                    let rule = field.parse(values::whole_regex).map(TextRule::Regex);
                    probe.body = rule.map(|rule| TextMatch { rule, ignore_case: false });
                });
            },
            |health| show_body(health, |rule| matches!(rule, TextRule::Regex(_))),
        ),
        Key::new(
            "server_name",
            "host",
            Preset::Means("that of requests"),
            "The name sent as SNI by checks, for which the server's certificate must be valid. With `tls`.",
            |field, health| health.server_name = field.parse(values::host),
            |health| health.server_name.as_deref().into(),
        ),
        Key::new(
            "interval",
            "duration",
            Preset::Is("5s"),
            "Time between two checks of the same server. Shorter intervals detect failures sooner, and \
                    load the servers more.",
            |field, health| field.set(&mut health.interval, timeout),
            |health| time(health.interval),
        ),
        Key::new(
            "timeout",
            "duration",
            Preset::Is("1s"),
            "Time after which a check fails.",
            |field, health| field.set(&mut health.timeout, timeout),
            |health| time(health.timeout),
        ),
        Key::new(
            "healthy",
            "count",
            Preset::Is("1"),
            "Consecutive successes after which a server is healthy again.",
            |field, health| field.set(&mut health.healthy, count),
            |health| health.healthy.get().into(),
        ),
        Key::new(
            "unhealthy",
            "count",
            Preset::Is("2"),
            "Consecutive failures after which a server is unhealthy.",
            |field, health| field.set(&mut health.unhealthy, count),
            |health| health.unhealthy.get().into(),
        ),
    ],
};

/// Reads the health checks; `None` if they are off.
pub(super) fn health(field: &Field<'_>) -> Option<Health> {
    if field.is_scalar() {
        return field.parse(switch)?.then(Health::default);
    }
    let mut health = Health::default();
    HEALTH.read(field, &mut health)?;
    refuse_contradictions(field, &health);
    Some(health)
}

fn refuse_contradictions(field: &Field<'_>, health: &Health) {
    if let (Some(_), Some(grpc), HealthProbe::Grpc { .. }) =
        (field.entry("path"), field.entry("grpc"), &health.probe)
    {
        grpc.error(Problem::new(
            "`path` is given too, and a check sends one kind of request",
            "remove one of them",
        ));
    }
    if let (Some(_), Some(regex)) = (field.entry("body"), field.entry("body_regex")) {
        regex.error(Problem::new("`body` is given too", "remove one of them"));
    }
    if let HealthProbe::Http(HttpProbe { method: Method::HEAD, body: Some(_), .. }) = &health.probe {
        field.at("method").error(Problem::new(
            "responses to `HEAD` have no body, which `body` needs",
            "remove one of them",
        ));
    }
}

/// Changes the request of the checks. Without a request, it is a mistake.
fn change_request(field: &Field<'_>, health: &mut Health, change: impl FnOnce(&mut HttpProbe)) {
    match &mut health.probe {
        HealthProbe::Http(probe) => change(probe),
        HealthProbe::Tcp => {
            field.error(Problem::new("the checks send no request", "add `path`, such as `/healthz`"));
        }
        HealthProbe::Grpc { .. } => {
            field.error(Problem::new("gRPC checks have their own request", "remove this, or use `path`"));
        }
    }
}

fn method(text: &str) -> Result<Method, Problem> {
    match value_conditions::method(text)? {
        Method::CONNECT => {
            Err(Problem::new("`CONNECT` opens a tunnel, which is not a check", "write `GET` or `HEAD`"))
        }
        method => Ok(method),
    }
}

fn read_host(field: &Field<'_>, health: &mut Health) {
    let Some(host) = field.parse(authority) else { return };
    match &mut health.probe {
        HealthProbe::Http(probe) => probe.host = Some(host),
        HealthProbe::Grpc { authority, .. } => *authority = Some(host),
        HealthProbe::Tcp => {
            field.error(Problem::new("the checks send no request", "add `path`, such as `/healthz`"));
        }
    }
}

fn authority(text: &str) -> Result<String, Problem> {
    let good = text.parse::<Authority>().is_ok() && !text.contains('@');
    let wrong = || {
        Problem::new(format!("{} is not a host", quote(text)), "write `app.internal` or `app.internal:8080`")
    };
    good.then(|| text.to_owned()).ok_or_else(wrong)
}

/// Parses a status, or a range of statuses.
fn statuses(text: &str) -> Result<(u16, u16), Problem> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = (values::status(first.trim())?, values::status(last.trim())?);
    match range.0 <= range.1 {
        true => Ok(range),
        false => {
            Err(Problem::new(format!("{} is an empty range", quote(text)), "write the lower status first"))
        }
    }
}

fn show_statuses((first, last): &(u16, u16)) -> Value {
    if first == last { (*first).into() } else { format!("{first}-{last}").into() }
}

/// Refuses a name for checks without TLS. `field` is the upstream.
pub(super) fn refuse_name_without_tls(field: &Field<'_>, upstream: &Upstream) {
    if upstream.tls.is_none() && upstream.health.as_ref().is_some_and(|health| health.server_name.is_some()) {
        let name = field.at("health").at("server_name");
        name.error(Problem::new(
            "this upstream does not use TLS",
            "add `tls` to the upstream, or remove this",
        ));
    }
}

/// Reads `grpc`; `None` for `off`.
fn grpc(text: &str) -> Option<HealthProbe> {
    let service = match switch(text) {
        Ok(false) => return None,
        Ok(true) => String::new(),
        Err(_) => text.to_owned(),
    };
    Some(HealthProbe::Grpc { service, authority: None })
}

/// Refuses gRPC checks over HTTP/1.1: gRPC needs HTTP/2. `field` is the upstream.
pub(super) fn refuse_grpc_over_http1(field: &Field<'_>, upstream: &Upstream) {
    let checks = upstream.health.as_ref().map(|health| &health.probe);
    let speaks = match upstream.protocol {
        UpstreamProtocol::Http2 => true,
        UpstreamProtocol::Auto => upstream.tls.is_some(),
        // A check has no client request that determines the version.
        UpstreamProtocol::Http1 | UpstreamProtocol::OfRequest => false,
    };
    if let (Some(HealthProbe::Grpc { .. }), false) = (checks, speaks) {
        field.at("health").at("grpc").error(Problem::new(
            "gRPC needs HTTP/2, and this upstream uses HTTP/1.1",
            "add `protocol: http2` to the upstream",
        ));
    }
}

fn show_service(probe: &HealthProbe) -> Value {
    match probe {
        HealthProbe::Grpc { service, .. } if service.is_empty() => "on".into(),
        HealthProbe::Grpc { service, .. } => service.as_str().into(),
        HealthProbe::Tcp | HealthProbe::Http(_) => Value::Null,
    }
}

fn show_request(health: &Health, of: impl FnOnce(&HttpProbe) -> Value) -> Value {
    match &health.probe {
        HealthProbe::Http(probe) => of(probe),
        HealthProbe::Tcp | HealthProbe::Grpc { .. } => Value::Null,
    }
}

fn show_host(health: &Health) -> Value {
    match &health.probe {
        HealthProbe::Http(probe) => probe.host.as_deref().into(),
        HealthProbe::Grpc { authority, .. } => authority.as_deref().into(),
        HealthProbe::Tcp => Value::Null,
    }
}

/// Shows the condition on the body, if it is of this kind.
fn show_body(health: &Health, is_kind: impl Fn(&TextRule) -> bool) -> Value {
    let HealthProbe::Http(HttpProbe { body: Some(body), .. }) = &health.probe else { return Value::Null };
    match &body.rule {
        rule if !is_kind(rule) => Value::Null,
        TextRule::Contains(text) => text.as_str().into(),
        TextRule::Regex(expression) => without_frame(expression.as_str()).into(),
        TextRule::Exact(_) | TextRule::Prefix(_) | TextRule::Suffix(_) => Value::Null,
    }
}
