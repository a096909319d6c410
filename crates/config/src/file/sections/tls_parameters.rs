//! TLS versions, cipher suites and groups, for clients and for upstream servers.

use crate::{
    Field, Problem,
    cipher_suites::{cipher_suite, is_of_tls10},
    enums::{name, word},
    model::{Group, Version},
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
        field.error(Problem::new("X25519MLKEM768 needs TLS 1.3, but `max` is lower", "add `X25519`"));
    }
    groups
}

/// Reads a list of cipher suites; returns OpenSSL's names.
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

/// Refuses versions and suites that allow no handshake. `field` is the mapping that contains them.
pub(super) fn refuse_nothing_left(field: &Field<'_>, [min, max]: [Version; 2], suites: &[String]) {
    if min > max {
        let key = if field.entry("max").is_some() { "max" } else { "min" };
        field.at(key).error(Problem::new(
            format!("`min` {} is above `max` {}", name(min), name(max)),
            "lower `min` or raise `max`",
        ));
    }
    let Some(written) = field.entry("cipher_suites").filter(|_| !suites.is_empty()) else { return };
    if min == Version::Tls13 {
        written.error(Problem::new(
            "only TLS 1.3 is offered, and its three suites are fixed",
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
