//! Health checks of a cluster's endpoints.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
    values::{enumeration, number},
};
use http::uri::Authority;
use quadrille_config::{
    Problem,
    model::{Health, HealthProbe, HttpProbe, UpstreamProtocol},
    values::path,
};
use std::{num::NonZeroUsize, time::Duration};

/// Reads the cluster's health check; more than one is an error.
pub(crate) fn health(cluster: &Message<'_>, protocol: UpstreamProtocol) -> Option<Option<Health>> {
    let checks = cluster.list("health_checks");
    let field = match checks.as_slice() {
        [] => return Some(None),
        [only] => only,
        [_, second, ..] => {
            return second.fail(Problem::new("refused: a cluster has one health check", "remove this one"));
        }
    };
    let message = field.message(&schema::HEALTH_CHECK)?;
    let probe = match message.one_of(&["http_health_check", "tcp_health_check", "grpc_health_check"]) {
        Some(("http_health_check", http)) => HealthProbe::Http(http_probe(&http)?),
        Some(("grpc_health_check", grpc)) => grpc_probe(&grpc, protocol)?,
        Some(_) => HealthProbe::Tcp,
        None => {
            return field.fail("write `http_health_check`, `tcp_health_check` or `grpc_health_check`");
        }
    };
    let time = |name| -> Option<Duration> {
        let field = message.require(name)?;
        match duration(&field)? {
            Duration::ZERO => {
                field.fail(Problem::new("zero would time out every check immediately", "write a longer time"))
            }
            time => Some(time),
        }
    };
    let threshold = |name| -> Option<NonZeroUsize> {
        let count = message.require(name)?.parse(number)?;
        Some(usize::try_from(count).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN))
    };
    Some(Some(Health {
        probe,
        server_name: None,
        interval: time("interval")?,
        timeout: time("timeout")?,
        healthy: threshold("healthy_threshold")?,
        unhealthy: threshold("unhealthy_threshold")?,
    }))
}

/// Reads `envoy.config.core.v3.HealthCheck.HttpHealthCheck`.
fn http_probe(field: &Field<'_>) -> Option<HttpProbe> {
    const METHODS: &[(&str, u32, &str)] = &[
        ("METHOD_UNSPECIFIED", 0, "GET"),
        ("GET", 1, "GET"),
        ("HEAD", 2, "HEAD"),
        ("POST", 3, "POST"),
        ("PUT", 4, "PUT"),
        ("DELETE", 5, "DELETE"),
        ("OPTIONS", 7, "OPTIONS"),
        ("TRACE", 8, "TRACE"),
        ("PATCH", 9, "PATCH"),
    ];
    let message = field.message(&schema::HTTP_HEALTH_CHECK)?;
    let mut probe = HttpProbe::get(message.require("path")?.parse(path)?);
    if let Some(method) = message.get("method") {
        probe.method = method.parse(enumeration(METHODS))?.parse().ok()?;
    }
    let host = message.string("host");
    if !host.is_empty() {
        if host.parse::<Authority>().is_err() {
            return field.fail(Problem::new("`host` is not a host", "write `example.com`, or omit it"));
        }
        probe.host = Some(host);
    }
    let statuses: Option<Vec<_>> = message.list("expected_statuses").iter().map(statuses).collect();
    if let Some(statuses) = statuses.filter(|statuses| !statuses.is_empty()) {
        probe.statuses = statuses;
    }
    Some(probe)
}

/// Reads a range of statuses, whose end is exclusive.
fn statuses(field: &Field<'_>) -> Option<(u16, u16)> {
    let message = field.message(&schema::INT64_RANGE)?;
    let (start, end) = (message.require("start")?.parse(number)?, message.require("end")?.parse(number)?);
    match (u16::try_from(start), u16::try_from(end)) {
        (Ok(start @ 100..), Ok(end @ ..=600)) if start < end => Some((start, end - 1)),
        _ => field
            .fail(Problem::new("not a range of statuses", "write `start: 200` and `end: 300`, or the like")),
    }
}

/// Reads `envoy.config.core.v3.HealthCheck.GrpcHealthCheck`.
fn grpc_probe(field: &Field<'_>, protocol: UpstreamProtocol) -> Option<HealthProbe> {
    let message = field.message(&schema::GRPC_HEALTH_CHECK)?;
    if matches!(protocol, UpstreamProtocol::Http1 | UpstreamProtocol::OfRequest) {
        return field.fail(Problem::new(
            "refused: gRPC requires HTTP/2, and the cluster uses HTTP/1.1",
            "write `http2_protocol_options` in the cluster's `HttpProtocolOptions`",
        ));
    }
    let authority = message.string("authority");
    if authority.parse::<Authority>().is_err() && !authority.is_empty() {
        return field.fail(Problem::new("`authority` is not a host", "write `example.com`, or omit it"));
    }
    let authority = Some(authority).filter(|authority| !authority.is_empty());
    Some(HealthProbe::Grpc { service: message.string("service_name"), authority })
}
