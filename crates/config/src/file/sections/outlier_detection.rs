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
        Key::new(
            "errors",
            "count, or `off`",
            Preset::Is("5"),
            "Consecutive failures that eject a server: responses with a status of 500 or above, or no \
                    response. In `tcp` mode: connections that could not be opened.",
            |field, outliers| field.set(&mut outliers.errors, count_or_off),
            |outliers| or_off(outliers.errors.as_ref(), |count| count.get().into()),
        ),
        Key::new(
            "gateway_errors",
            "count, or `off`",
            Preset::Is("off"),
            "Consecutive responses with 502, 503 or 504, or missing responses, that eject a server.",
            |field, outliers| field.set(&mut outliers.gateway_errors, count_or_off),
            |outliers| or_off(outliers.gateway_errors.as_ref(), |count| count.get().into()),
        ),
        Key::new(
            "ejection",
            "duration",
            Preset::Is("30s"),
            "Duration of the first ejection; the second in a row lasts twice as long, and so on.",
            |field, outliers| field.set(&mut outliers.ejection, timeout),
            |outliers| time(outliers.ejection),
        ),
        Key::new(
            "longest_ejection",
            "duration",
            Preset::Is("300s"),
            "Maximum duration of an ejection.",
            |field, outliers| field.set(&mut outliers.longest_ejection, timeout),
            |outliers| time(outliers.longest_ejection),
        ),
        Key::new(
            "interval",
            "duration",
            Preset::Is("10s"),
            "After each interval without an ejection, the ejection count of a server in use decreases \
                    by one.",
            |field, outliers| field.set(&mut outliers.interval, timeout),
            |outliers| time(outliers.interval),
        ),
        Key::new(
            "most",
            "percentage, 1 to 100",
            Preset::Is("10"),
            "While this percentage of the servers, or more, is ejected, no other server is; the first can \
                    always be ejected. With 100, a fault of all servers means that every request receives a 503 \
                    response.",
            |field, outliers| field.set(&mut outliers.most, percentage),
            |outliers| outliers.most.into(),
        ),
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
