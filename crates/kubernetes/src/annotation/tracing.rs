//! Logs and spans: `enable-access-log`, `enable-opentelemetry` and their like, which apply to all requests here.

use super::Annotations;

/// Judges the settings of an Ingress.
pub(crate) fn judge(annotations: &Annotations<'_, '_>) {
    let globals = &annotations.world.globals;
    let logs = !globals.flag("disable-access-log", false);
    if annotations.flag("enable-access-log") == Some(logs) {
        annotations.works("enable-access-log");
    }
    if annotations.flag("enable-rewrite-log") == Some(false) {
        annotations.works("enable-rewrite-log");
    }
    let traces = globals.get("otlp-collector-host").is_some() && globals.flag("enable-opentelemetry", false);
    match annotations.flag("enable-opentelemetry") {
        Some(enabled) if enabled == traces => annotations.works("enable-opentelemetry"),
        Some(true) => annotations.refuse(
            "enable-opentelemetry",
            "no collector is known: set `otlp-collector-host` and `enable-opentelemetry` in the ConfigMap, or `tracing`",
        ),
        _ => {}
    }
    if annotations.flag("opentelemetry-trust-incoming-span")
        == Some(globals.flag("opentelemetry-trust-incoming-span", true))
    {
        annotations.works("opentelemetry-trust-incoming-span");
    }
    for name in ["http2-push-preload", "use-port-in-redirects", "relative-redirects", "ssl-passthrough"] {
        if annotations.flag(name) == Some(false) {
            annotations.works(name);
        }
    }
}
