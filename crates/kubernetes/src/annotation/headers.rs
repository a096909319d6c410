//! Headers: `custom-headers`, `connection-proxy-header`, `upstream-vhost`, and those of the ConfigMap.

use super::{Annotations, Texts, text::list};
use quadrille_draft::{draft::Route, values, yaml::Map};

/// Adds changes of headers to a route that forwards.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, texts: &Texts, route: &mut Route) {
    let world = annotations.world;
    for (name, value) in world.named_map("proxy-set-headers") {
        match texts.header_value(&value).ok().filter(|_| values::is_changeable(&name)) {
            Some(value) => {
                route.keys.push("request_headers", Map::of("set", name).with("value", value));
            }
            None => world.refuse_global("proxy-set-headers", "one of its headers cannot be set"),
        }
    }
    if let Some(name) = annotations.value("custom-headers") {
        custom(annotations, name, texts, route);
    }
    if let Some(host) = annotations.value("upstream-vhost") {
        let host = texts.substituted(host);
        match host.as_str() {
            "$host" | "$http_host" => {}
            host if quadrille_config::values::host(host.split(':').next().unwrap_or_default()).is_ok() => {
                route.keys.set("upstream_host", host);
            }
            _ => annotations
                .refuse("upstream-vhost", "write a fixed host; servers receive that of the request"),
        }
    }
    if let Some(header) = annotations.value("connection-proxy-header") {
        let is_usual = header.eq_ignore_ascii_case("keep-alive") || header.eq_ignore_ascii_case("upgrade");
        if is_usual {
            annotations.works("connection-proxy-header");
        }
    }
}

/// Adds the headers of a ConfigMap to responses.
fn custom(annotations: &Annotations<'_, '_>, name: &str, texts: &Texts, route: &mut Route) {
    let (namespace, name) = name.split_once('/').unwrap_or((&annotations.meta.namespace, name));
    let Some(map) = annotations.world.objects.config_map(namespace, name) else {
        annotations.refuse(
            "custom-headers",
            format!(
                "the ConfigMap {namespace}/{name} {}; its headers are not set meanwhile",
                annotations.world.objects.missing()
            ),
        );
        return;
    };
    let allowed: Vec<_> = annotations
        .world
        .globals
        .get("global-allowed-response-headers")
        .map(list)
        .into_iter()
        .flatten()
        .map(str::to_ascii_lowercase)
        .collect();
    for (header, value) in &map.data {
        if !allowed.contains(&header.to_ascii_lowercase()) {
            annotations.differ(
                "custom-headers",
                "its headers are set without a list of allowed ones: ingress-nginx needs `global-allowed-response-headers`",
            );
        }
        match texts.header_value(value).ok().filter(|_| values::is_changeable(header)) {
            Some(value) => {
                route.keys.push("response_headers", Map::of("set", header).with("value", value));
            }
            None => annotations.refuse("custom-headers", format!("the header `{header}` cannot be set")),
        }
    }
}
