//! Canaries: a second backend for some requests of a path.

use super::Annotations;
use quadrille_draft::{expression, yaml::Map};

/// The requests that a canary receives, in the order of precedence.
#[derive(Debug)]
pub(crate) struct Canary {
    /// Conditions of requests that go to the canary, or, if `false`, never do.
    pub(crate) conditions: Vec<(Map, bool)>,
    /// The share of all others, and the total.
    pub(crate) weight: Option<(u64, u64)>,
}

/// Reads the canary's annotations.
pub(crate) fn read(annotations: &Annotations<'_, '_>) -> Canary {
    let mut conditions = Vec::new();
    if let Some(name) = annotations.value("canary-by-header") {
        header(annotations, name, &mut conditions);
    }
    if let Some(name) = annotations.value("canary-by-cookie") {
        let cookie = |value: &str| Map::of("cookies", vec![Map::of("name", name).with("exact", value)]);
        conditions.push((cookie("always"), true));
        conditions.push((cookie("never"), false));
    }
    let total = annotations.number("canary-weight-total").filter(|total| *total > 0).unwrap_or(100);
    let weight = annotations.number("canary-weight").map(|weight| (weight.min(total), total));
    Canary { conditions, weight: weight.filter(|(weight, _)| *weight > 0) }
}

fn header(annotations: &Annotations<'_, '_>, name: &str, conditions: &mut Vec<(Map, bool)>) {
    if quadrille_config::values::header_name(name).is_err() {
        annotations
            .refuse("canary-by-header", "not the name of a header: no request goes to the canary by it");
        return;
    }
    let condition = |key: &str, value: &str| Map::of("headers", vec![Map::of("name", name).with(key, value)]);
    if let Some(value) = annotations.value("canary-by-header-value") {
        conditions.push((condition("exact", value), true));
        if annotations.value("canary-by-header-pattern").is_some() {
            annotations.works("canary-by-header-pattern");
        }
    } else if let Some(pattern) = annotations.value("canary-by-header-pattern") {
        match expression::whole(pattern, false) {
            Ok(whole) => conditions.push((condition("regex", &whole), true)),
            Err(problem) => annotations.refuse("canary-by-header-pattern", problem),
        }
    } else {
        conditions.push((condition("exact", "always"), true));
        conditions.push((condition("exact", "never"), false));
    }
}
