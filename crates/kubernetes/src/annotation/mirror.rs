//! Copies of requests: `mirror-target`, `mirror-host` and `mirror-request-body`.

use super::{Annotations, Texts};
use quadrille_draft::{draft::Route, values, yaml::Map};

/// Adds the upstream that receives copies.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, texts: &Texts, route: &mut Route) {
    let Some(target) = annotations.value("mirror-target") else { return };
    let target = texts.substituted(target);
    let Some((scheme @ ("http" | "https"), rest)) = target.split_once("://") else {
        annotations.refuse("mirror-target", "write a URL such as http://test.example$request_uri");
        return;
    };
    let (authority, path) = rest.split_at(rest.find(['/', '$', '?']).unwrap_or(rest.len()));
    let Some(address) = values::server_address(authority, if scheme == "https" { 443 } else { 80 }) else {
        annotations.refuse("mirror-target", format!("`{authority}` is not a host with a port"));
        return;
    };
    if !["", "/", "$request_uri"].contains(&path) {
        annotations.differ("mirror-target", "copies have the path of the request");
    }
    let mut upstream = Map::of("servers", vec![address]);
    if scheme == "https" {
        upstream.set("tls", Map::of("verify", "off"));
    }
    let name = format!("mirror-{}", authority.replace([':', '[', ']'], "-"));
    let name = annotations.world.draft.borrow_mut().upstream(&name, upstream);
    route.keys.push("mirror", name);
    if annotations.value("mirror-request-body").is_some_and(|word| word.eq_ignore_ascii_case("on")) {
        annotations.works("mirror-request-body");
    }
}
