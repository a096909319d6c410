//! Active health checks.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::{Health, HealthProbe},
    values::{count, path, timeout},
    words::switch,
};

pub(super) const HEALTH: Section = Section {
    path: "upstreams.<name>.health",
    about: "Active health checks. `on` checks with the defaults; each check is a new connection to the server.",
    keys: &[
        Key {
            name: "path",
            value: "path",
            preset: Preset::Means("no request: a connection is enough"),
            about: "A server is healthy if `GET` of this path answers 200; without it, if a connection can be opened.",
        },
        Key {
            name: "interval",
            value: "duration",
            preset: Preset::Is("5s"),
            about: "Between two checks of the same server. Shorter finds failures sooner, and asks more of the servers.",
        },
        Key {
            name: "timeout",
            value: "duration",
            preset: Preset::Is("1s"),
            about: "After which a check has failed.",
        },
        Key {
            name: "healthy",
            value: "count",
            preset: Preset::Is("1"),
            about: "Successes in a row that bring a server back.",
        },
        Key {
            name: "unhealthy",
            value: "count",
            preset: Preset::Is("2"),
            about: "Failures in a row that take a server out.",
        },
    ],
};

/// The checks, unless they are switched off.
pub(super) fn health(field: &Field<'_>) -> Option<Health> {
    if field.is_scalar() {
        return field.parse(switch)?.then(Health::default);
    }
    let keys = field.mapping(&HEALTH)?;
    let mut health = Health::default();
    keys.update("path", &mut health.probe, |text| path(text).map(HealthProbe::Http));
    keys.update("interval", &mut health.interval, timeout);
    keys.update("timeout", &mut health.timeout, timeout);
    keys.update("healthy", &mut health.healthy, count);
    keys.update("unhealthy", &mut health.unhealthy, count);
    Some(health)
}
