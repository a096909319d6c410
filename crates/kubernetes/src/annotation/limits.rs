//! Rate limits and connection limits: the `limit` family.

use super::{Annotations, text::list};
use quadrille_draft::{draft::Route, yaml::Map};

/// Adds the limits of a route.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let multiplier = annotations.number("limit-burst-multiplier").filter(|factor| *factor > 0).unwrap_or(5);
    for (name, unit) in [("limit-rpm", "m"), ("limit-rps", "s")] {
        let Some(number) = annotations.value(name) else { continue };
        match number.parse::<u64>() {
            Ok(0) => annotations.works(name),
            Ok(number) => {
                let burst = number.saturating_mul(multiplier).saturating_add(1);
                let limit = Map::of("rate", format!("{number}/{unit}")).with("burst", burst);
                let limit = limit.with("ipv4_prefix", "32").with("ipv6_prefix", "128");
                route.keys.push("rate_limits", limit);
                annotations.differ(name, "requests beyond it receive 429, not 503");
            }
            Err(_) => bad(annotations, name, route),
        }
    }
    if let Some(number) = annotations.value("limit-connections") {
        match number.parse::<u64>() {
            Ok(0) => annotations.works("limit-connections"),
            Ok(number) => {
                route.keys.inner("limits").set("requests_per_client", number);
                annotations.differ("limit-connections", "requests beyond it receive 429, not 503");
            }
            Err(_) => bad(annotations, "limit-connections", route),
        }
    }
    if annotations.value("limit-allowlist").map(list).into_iter().flatten().next().is_some() {
        annotations.differ("limit-allowlist", "its clients are limited, too");
    }
    for name in ["limit-rate", "limit-rate-after"] {
        if annotations.value(name) == Some("0") {
            annotations.works(name);
        }
    }
}

fn bad(annotations: &Annotations<'_, '_>, name: &str, route: &mut Route) {
    annotations.refuse(name, "write a whole number; its paths respond with 503 meanwhile");
    route.close(503, &format!("{}: not a number", annotations.shown(name)));
}
