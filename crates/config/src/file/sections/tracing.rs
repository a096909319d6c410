//! Which requests are traced, and where their spans are sent.

use crate::{
    Field, Problem,
    file::schema::{Key, Preset, Section},
    model::Tracing,
    quote, share,
    words::{name, switch, word},
};

pub(super) const TRACING: Section<Tracing> = Section {
    path: "tracing",
    about: "Spans of requests, as OpenTelemetry has them, for a collector. An endpoint alone is short for a mapping with it. \
            What is not recorded costs a header of the request; what is costs some microseconds, and about 1 KiB of memory \
            until it is sent.",
    keys: &[
        Key {
            name: "endpoint",
            value: "`http://host:port`",
            preset: Preset::Required,
            about: "The collector, in plain text: one on this machine or in a private network, which may pass spans on by TLS. \
                    With `protocol: http` a path may follow; without one it is `/v1/traces`.",
            needs_restart: false,
            read: |field, tracing| tracing.endpoint = field.parse(endpoint).unwrap_or_default(),
            show: |tracing| tracing.endpoint.as_str().into(),
        },
        Key {
            name: "protocol",
            value: "`grpc` or `http`",
            preset: Preset::Is("grpc"),
            about: "How spans are sent: OTLP by gRPC (collectors have it on port 4317), or in HTTP/1.1 (port 4318).",
            needs_restart: false,
            read: |field, tracing| field.set(&mut tracing.protocol, word),
            show: |tracing| name(tracing.protocol).into(),
        },
        Key {
            name: "percent",
            value: "percentage, up to 100",
            preset: Preset::Is("1"),
            about: "How many of the traces that begin here are recorded, chosen at random. Of those that are continued, it is \
                    as their beginning says.",
            needs_restart: false,
            read: |field, tracing| field.set(&mut tracing.parts, share::percentage),
            show: |tracing| share::show(tracing.parts).into(),
        },
        Key {
            name: "parents",
            value: "`trusted_proxies`, `all` or `off`",
            preset: Preset::Is("trusted_proxies"),
            about: "Whose `traceparent` is continued; others' is replaced. With `all`, clients decide what is recorded.",
            needs_restart: false,
            read: |field, tracing| field.set(&mut tracing.parents, word),
            show: |tracing| name(tracing.parents).into(),
        },
        Key {
            name: "service",
            value: "text",
            preset: Preset::Is("quadrille"),
            about: "What collectors call this gateway (`service.name`).",
            needs_restart: false,
            read: |field, tracing| field.set(&mut tracing.service, service),
            show: |tracing| tracing.service.as_str().into(),
        },
    ],
};

/// A mapping, an endpoint, or `off`.
pub(super) fn tracing(field: &Field<'_>) -> Option<Tracing> {
    if field.is_scalar() {
        let off = matches!(switch(field.text()?), Ok(false));
        return if off { None } else { field.parse(endpoint).map(Tracing::new) };
    }
    let mut tracing = Tracing::new(String::new());
    TRACING.read(field, &mut tracing)?;
    (!tracing.endpoint.is_empty()).then_some(tracing)
}

fn endpoint(text: &str) -> Result<String, Problem> {
    if text.starts_with("https://") {
        let message = format!("{} asks for TLS, which is not spoken to collectors", quote(text));
        return Err(Problem::new(message, "send to a collector nearby by `http://`, which passes spans on"));
    }
    let rest = text.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
    match port {
        Some((host, Ok(1..))) if !host.is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.to_owned())
        }
        _ => Err(Problem::new(
            format!("{} is no endpoint", quote(text)),
            "write `http://` with host and port, such as `http://127.0.0.1:4317`",
        )),
    }
}

fn service(text: &str) -> Result<String, Problem> {
    match text.is_empty() {
        true => Err(Problem::new("the name is empty", "write one, such as `edge`")),
        false => Ok(text.to_owned()),
    }
}
