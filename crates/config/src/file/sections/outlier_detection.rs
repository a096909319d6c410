//! Servers that are left out for a while.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::{or_off, time},
    },
    model::OutlierDetection,
    values::{count, timeout},
    words::switch,
};
use std::num::NonZeroUsize;

pub(super) const OUTLIER_DETECTION: Section<OutlierDetection> = Section {
    path: "upstreams.<name>.outlier_detection",
    about: "Servers that fail are ejected for a while: they receive no requests. They are judged by their responses to \
            requests; unlike health checks, this sends none of its own. `on` uses the defaults.",
    keys: &[
        Key {
            name: "errors",
            value: "count, or `off`",
            preset: Preset::Is("5"),
            about: "This many requests in a row that were answered with a status of 500 or above, or not at all. In \
                    `tcp` mode: connections that could not be opened.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.errors, count_or_off),
            show: |outliers| or_off(outliers.errors.as_ref(), |count| count.get().into()),
        },
        Key {
            name: "gateway_errors",
            value: "count, or `off`",
            preset: Preset::Is("off"),
            about: "This many in a row that were answered with 502, 503 or 504, or not at all.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.gateway_errors, count_or_off),
            show: |outliers| or_off(outliers.gateway_errors.as_ref(), |count| count.get().into()),
        },
        Key {
            name: "ejection",
            value: "duration",
            preset: Preset::Is("30s"),
            about: "How long a server is ejected the first time; the second time in a row twice as long, and so on.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.ejection, timeout),
            show: |outliers| time(outliers.ejection),
        },
        Key {
            name: "longest_ejection",
            value: "duration",
            preset: Preset::Is("300s"),
            about: "The longest time for which a server is ejected.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.longest_ejection, timeout),
            show: |outliers| time(outliers.longest_ejection),
        },
        Key {
            name: "interval",
            value: "duration",
            preset: Preset::Is("10s"),
            about: "After each such time without an ejection, a server that is back counts as ejected once less.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.interval, timeout),
            show: |outliers| time(outliers.interval),
        },
        Key {
            name: "most",
            value: "percentage, 1 to 100",
            preset: Preset::Is("10"),
            about: "While this percentage of the servers, or more, is ejected, no other is; the first always can be. \
                    With 100, a fault of all servers answers every request with 503.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.most, percentage),
            show: |outliers| outliers.most.into(),
        },
    ],
};

/// Unless it is switched off.
pub(super) fn outlier_detection(field: &Field<'_>) -> Option<OutlierDetection> {
    if field.is_scalar() {
        return field.parse(switch)?.then(OutlierDetection::default);
    }
    let mut outliers = OutlierDetection::default();
    OUTLIER_DETECTION.read(field, &mut outliers)?;
    Some(outliers)
}

fn count_or_off(text: &str) -> Result<Option<NonZeroUsize>, Problem> {
    if text == "off" { Ok(None) } else { count(text).map(Some) }
}

fn percentage(text: &str) -> Result<u8, Problem> {
    let wrong =
        || Problem::new(format!("`{text}` is not a percentage"), "write a whole number from 1 to 100");
    text.parse().ok().filter(|value| (1..=100).contains(value)).ok_or_else(wrong)
}
