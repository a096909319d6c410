//! Errors of servers: `custom-http-errors` and `disable-proxy-intercept-errors`.

use super::{Annotations, text::list};
use quadrille_draft::{draft::Route, yaml::Map};

/// Replaces the listed errors of servers by the gateway's own page.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let Some(text) = annotations.or_global("custom-http-errors") else { return };
    if annotations.flag("disable-proxy-intercept-errors") == Some(true) {
        annotations.works("custom-http-errors");
        return;
    }
    let (good, bad): (Vec<_>, Vec<_>) = list(text)
        .partition(|status| status.parse::<u16>().is_ok_and(|status| (400..=599).contains(&status)));
    if !bad.is_empty() {
        annotations.refuse(
            "custom-http-errors",
            format!("{} cannot be replaced: list statuses from 400 to 599", bad.join(", ")),
        );
    }
    if good.is_empty() {
        return;
    }
    let pages = good.iter().map(|status| {
        Map::of("status", *status)
            .with("servers", "on")
            .with("content_type", "text/plain; charset=utf-8")
            .with("body", format!("{status}\n"))
    });
    route.keys.set("error_pages", pages.collect::<Vec<_>>());
    annotations.differ(
        "custom-http-errors",
        "the body is a short page of the gateway, not that of the default backend: write `error_pages`",
    );
}
