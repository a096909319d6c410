//! Active health checks.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    model::{Health, HealthProbe, Upstream, UpstreamProtocol},
    values::{count, path, timeout},
};
use serde_json::Value;

pub(super) const HEALTH: Section<Health> = Section {
    path: "upstreams.<name>.health",
    about: "Active health checks. `on` checks with the defaults; each check is a new connection to the server.",
    keys: &[
        Key::new(
            "path",
            "path",
            Preset::Means("no request: a connection is enough"),
            "A server is healthy if it responds to a `GET` of this path with 200; without it, if a connection \
                    can be opened.",
            |field, health| field.set(&mut health.probe, |text| path(text).map(HealthProbe::Http)),
            |health| show_probe(&health.probe),
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
    if let (Some(_), Some(grpc), HealthProbe::Grpc { .. }) =
        (field.entry("path"), field.entry("grpc"), &health.probe)
    {
        grpc.error(Problem::new(
            "`path` is given too, and a check sends one kind of request",
            "remove one of them",
        ));
    }
    Some(health)
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

fn show_probe(probe: &HealthProbe) -> Value {
    match probe {
        HealthProbe::Tcp | HealthProbe::Grpc { .. } => Value::Null,
        HealthProbe::Http(path) => path.as_str().into(),
    }
}
