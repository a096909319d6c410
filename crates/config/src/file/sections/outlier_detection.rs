//! Outlier detection: temporary ejection of failing servers.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{or_off, time},
    },
    model::OutlierDetection,
    values::{count, timeout},
};
use std::num::NonZeroUsize;

pub(super) const OUTLIER_DETECTION: Section<OutlierDetection> = Section {
    path: "upstreams.<name>.outlier_detection",
    about: "Outlier detection: servers that fail are ejected for some time, and receive no requests. Failures are \
            detected from responses to requests; unlike health checks, this sends none of its own. `on` uses the \
            defaults.",
    keys: &[
        Key {
            name: "errors",
            value: "count, or `off`",
            preset: Preset::Is("5"),
            about: "Consecutive failures that eject a server: responses with a status of 500 or above, or no \
                    response. In `tcp` mode: connections that could not be opened.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.errors, count_or_off),
            show: |outliers| or_off(outliers.errors.as_ref(), |count| count.get().into()),
        },
        Key {
            name: "gateway_errors",
            value: "count, or `off`",
            preset: Preset::Is("off"),
            about: "Consecutive responses with 502, 503 or 504, or missing responses, that eject a server.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.gateway_errors, count_or_off),
            show: |outliers| or_off(outliers.gateway_errors.as_ref(), |count| count.get().into()),
        },
        Key {
            name: "ejection",
            value: "duration",
            preset: Preset::Is("30s"),
            about: "Duration of the first ejection; the second in a row lasts twice as long, and so on.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.ejection, timeout),
            show: |outliers| time(outliers.ejection),
        },
        Key {
            name: "longest_ejection",
            value: "duration",
            preset: Preset::Is("300s"),
            about: "Maximum duration of an ejection.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.longest_ejection, timeout),
            show: |outliers| time(outliers.longest_ejection),
        },
        Key {
            name: "interval",
            value: "duration",
            preset: Preset::Is("10s"),
            about: "After each interval without an ejection, the ejection count of a server in use decreases \
                    by one.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.interval, timeout),
            show: |outliers| time(outliers.interval),
        },
        Key {
            name: "most",
            value: "percentage, 1 to 100",
            preset: Preset::Is("10"),
            about: "While this percentage of the servers, or more, is ejected, no other server is; the first can \
                    always be ejected. With 100, a fault of all servers means that every request receives a 503 \
                    response.",
            needs_restart: false,
            read: |field, outliers| field.set(&mut outliers.most, percentage),
            show: |outliers| outliers.most.into(),
        },
    ],
};

/// Reads outlier detection; `None` if it is off.
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
