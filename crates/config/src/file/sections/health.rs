//! Active health checks.

use crate::{
    Field,
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    model::{Health, HealthProbe},
    values::{count, path, timeout},
    words::switch,
};
use serde_json::Value;

pub(super) const HEALTH: Section<Health> = Section {
    path: "upstreams.<name>.health",
    about: "Active health checks. `on` checks with the defaults; each check is a new connection to the server.",
    keys: &[
        Key {
            name: "path",
            value: "path",
            preset: Preset::Means("no request: a connection is enough"),
            about: "A server is healthy if `GET` of this path answers 200; without it, if a connection can be opened.",
            needs_restart: false,
            read: |field, health| field.set(&mut health.probe, |text| path(text).map(HealthProbe::Http)),
            show: |health| show_probe(&health.probe),
        },
        Key {
            name: "interval",
            value: "duration",
            preset: Preset::Is("5s"),
            about: "Between two checks of the same server. Shorter finds failures sooner, and asks more of the servers.",
            needs_restart: false,
            read: |field, health| field.set(&mut health.interval, timeout),
            show: |health| time(health.interval),
        },
        Key {
            name: "timeout",
            value: "duration",
            preset: Preset::Is("1s"),
            about: "After which a check has failed.",
            needs_restart: false,
            read: |field, health| field.set(&mut health.timeout, timeout),
            show: |health| time(health.timeout),
        },
        Key {
            name: "healthy",
            value: "count",
            preset: Preset::Is("1"),
            about: "Successes in a row that bring a server back.",
            needs_restart: false,
            read: |field, health| field.set(&mut health.healthy, count),
            show: |health| health.healthy.get().into(),
        },
        Key {
            name: "unhealthy",
            value: "count",
            preset: Preset::Is("2"),
            about: "Failures in a row that take a server out.",
            needs_restart: false,
            read: |field, health| field.set(&mut health.unhealthy, count),
            show: |health| health.unhealthy.get().into(),
        },
    ],
};

/// The checks, unless they are switched off.
pub(super) fn health(field: &Field<'_>) -> Option<Health> {
    if field.is_scalar() {
        return field.parse(switch)?.then(Health::default);
    }
    let mut health = Health::default();
    HEALTH.read(field, &mut health)?;
    Some(health)
}

fn show_probe(probe: &HealthProbe) -> Value {
    match probe {
        HealthProbe::Tcp => Value::Null,
        HealthProbe::Http(path) => path.as_str().into(),
    }
}
