//! Forwarding: protocol, timeouts, sizes of bodies, and what proxies change in responses.

use super::Annotations;
use quadrille_draft::{draft::Route, values, yaml::Map};

/// Sets protocol and timeouts of an upstream.
///
/// # Errors
/// If servers do not speak HTTP.
pub(crate) fn upstream(annotations: &Annotations<'_, '_>, upstream: &mut Map) -> Result<(), String> {
    for (name, key) in [
        ("proxy-connect-timeout", "connect"),
        ("proxy-read-timeout", "read"),
        ("proxy-send-timeout", "write"),
    ] {
        let Some(text) = annotations.or_global(name) else { continue };
        let seconds = text.strip_suffix('s').unwrap_or(text);
        match seconds.parse::<u64>().ok().and_then(|seconds| values::shown(seconds.saturating_mul(1_000))) {
            Some(time) => upstream.inner("timeouts").set(key, time),
            None => annotations.refuse(name, "write a number of seconds, at least 1; the default applies"),
        }
    }
    let globals = &annotations.world.globals;
    if let Some(count) =
        globals.get("upstream-keepalive-connections").and_then(|text| text.parse::<u64>().ok())
    {
        upstream.set("pool", count.max(1));
    }
    if let Some(time) = globals.get("upstream-keepalive-timeout").and_then(values::duration) {
        upstream.inner("timeouts").set("idle", time);
    }
    let protocol = annotations.value("backend-protocol").unwrap_or("HTTP").to_ascii_uppercase();
    match protocol.as_str() {
        "HTTP" => {}
        "HTTPS" => upstream.set("tls", Map::of("verify", "off")),
        "GRPC" => upstream.set("protocol", "http2"),
        "GRPCS" => {
            upstream.set("tls", Map::of("verify", "off"));
            upstream.set("protocol", "http2");
        }
        "AUTO_HTTP" => annotations
            .differ("backend-protocol", "servers are reached by HTTP, also for requests over HTTPS"),
        other => {
            let remedy = format!(
                "`{other}` is not spoken: put a server that speaks HTTP in front; its paths respond with 503"
            );
            annotations.refuse("backend-protocol", remedy);
            return Err(format!("{}: `{other}` is not spoken", annotations.shown("backend-protocol")));
        }
    }
    match annotations.value("proxy-http-version") {
        Some("1.1") if !protocol.starts_with("GRPC") => upstream.set("protocol", "http1"),
        Some("1.0") => annotations.differ("proxy-http-version", "servers receive HTTP/1.1"),
        _ => {}
    }
    Ok(())
}

/// Sets the maximum size of bodies, and judges settings of responses.
pub(crate) fn route(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let size = annotations.or_global("proxy-body-size").unwrap_or("1m");
    match values::bytes(size) {
        Some(0) => route.keys.inner("limits").set("body", "off"),
        Some(bytes) => route.keys.inner("limits").set("body", values::size(bytes)),
        None => {
            annotations.refuse("proxy-body-size", "write a size such as 8m; 1m applies");
            route.keys.inner("limits").set("body", "1MiB");
        }
    }
    for name in ["proxy-cookie-domain", "proxy-cookie-path"] {
        if annotations.value(name) == Some("off") {
            annotations.works(name);
        }
    }
    if let Some("off" | "default") = annotations.value("proxy-redirect-from") {
        annotations.works("proxy-redirect-from");
        annotations.works("proxy-redirect-to");
    }
    for (name, value) in
        [("proxy-buffering", "off"), ("proxy-request-buffering", "off"), ("proxy-max-temp-file-size", "0")]
    {
        if annotations.value(name) == Some(value) {
            annotations.works(name);
        }
    }
}
