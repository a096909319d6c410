//! Versions, cipher suites and groups, towards clients and towards servers.

use crate::{
    Field, Problem,
    cipher_suites::{cipher_suite, is_of_tls10},
    model::{Group, Version},
    words::{name, word},
};

pub(super) fn groups(field: &Field<'_>, max: Version) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let items = field.items();
    for item in &items {
        match item.parse(word) {
            Some(group) if groups.contains(&group) => {
                item.error(Problem::new(format!("`{}` is listed twice", name(group)), "remove one"));
            }
            Some(group) => groups.push(group),
            None => {}
        }
    }
    if groups == [Group::X25519MlKem768] && items.len() == 1 && max < Version::Tls13 {
        field.error(Problem::new("X25519MLKEM768 needs TLS 1.3, and max is below", "add `X25519`"));
    }
    groups
}

/// By OpenSSL's names.
pub(super) fn cipher_suites(field: &Field<'_>) -> Vec<String> {
    let mut suites: Vec<String> = Vec::new();
    for item in field.items() {
        let Some(suite) = item.parse(cipher_suite) else { continue };
        if suites.contains(&suite) {
            item.error(Problem::new(format!("`{suite}` is listed twice"), "remove one"));
        }
        suites.push(suite);
    }
    suites
}

/// Versions and suites that leave nothing to agree on. `field` is the mapping that they stand in.
pub(super) fn refuse_nothing_left(field: &Field<'_>, [min, max]: [Version; 2], suites: &[String]) {
    if min > max {
        let key = if field.entry("max").is_some() { "max" } else { "min" };
        field.at(key).error(Problem::new(
            format!("no version is left from min {} to max {}", name(min), name(max)),
            "lower `min` or raise `max`",
        ));
    }
    let Some(written) = field.entry("cipher_suites").filter(|_| !suites.is_empty()) else { return };
    if min == Version::Tls13 {
        written.error(Problem::new(
            "the suites of TLS 1.3 are always the same three, and no other version is offered",
            "remove this, or lower `min`",
        ));
    }
    if min < Version::Tls12 && !suites.iter().any(|suite| is_of_tls10(suite)) {
        written.error(Problem::new(
            format!("TLS {} has none of these suites", name(min)),
            "add one that ends in `-SHA`, or raise `min` to `1.2`",
        ));
    }
}
