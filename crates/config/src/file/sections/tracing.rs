//! Tracing of requests, and the collector that receives the spans.

use super::upstream_tls::{self, UPSTREAM_TLS};
use crate::{
    Field, Problem,
    enums::{name, switch, word},
    file::schema::{Key, Preset, Section},
    fraction,
    model::{
        CollectorEndpoint, CollectorServers, Place, SpanCollector, Tracing, TracingProtocol, UpstreamTls,
    },
    quote, values,
};
use ::http::{HeaderName, HeaderValue, uri::PathAndQuery};
use serde_json::Value;

pub(super) const TRACING: Section<Draft, Tracing> = Section {
    path: "tracing",
    about: "OpenTelemetry spans of requests, sent to a collector. An endpoint alone is short for a mapping with it. A \
            request that is not recorded costs one header; a recorded one costs some microseconds, and about 1 KiB of \
            memory until its spans are sent.",
    keys: &[
        Key::new(
            "endpoint",
            "`http://host:port` or `https://host:port`",
            Preset::Required,
            "The collector, in plain text or over TLS. With `protocol: http` a path may follow; without one it is \
                    `/v1/traces`.",
            |field, draft| draft.endpoint = field.parse(endpoint),
            |tracing| show_endpoint(&tracing.collector).into(),
        ),
        Key::new(
            "protocol",
            "`grpc` or `http`",
            Preset::Is("grpc"),
            "The protocol that carries the spans: OTLP by gRPC (collectors have it on port 4317), or \
                    OTLP by HTTP (port 4318).",
            |field, draft| field.set(&mut draft.tracing.collector.protocol, word),
            |tracing| name(tracing.collector.protocol).into(),
        ),
        Key::new(
            "tls",
            "mapping",
            Preset::Means("the system's CA bundle"),
            "Verification of an `https` endpoint, and the certificate that is presented to it: `ca`, \
                    `certificate` and the other keys of [`upstreams.<name>.tls`](#upstreamsnametls).",
            |field, draft| draft.tls = upstream_tls::tls(field),
            |tracing| show_tls(&tracing.collector),
        ),
        Key::new(
            "headers",
            "mapping of names to values",
            Preset::Means("none"),
            "Headers that are sent to the collector with every message, such as the key of an account. The \
                    values are secrets: no page and no log shows them. They take precedence over \
                    `OTEL_EXPORTER_OTLP_HEADERS` of the environment.",
            |field, draft| draft.tracing.collector.headers = headers(field),
            |tracing| show_headers(&tracing.collector),
        ),
        Key::new(
            "percent",
            "percentage, up to 100",
            Preset::Is("1"),
            "The percentage of traces beginning here that are recorded, chosen at random. Continued traces \
                    are recorded if the parent is sampled.",
            |field, draft| field.set(&mut draft.tracing.parts, fraction::percentage),
            |tracing| fraction::show(tracing.parts).into(),
        ),
        Key::new(
            "parents",
            "`trusted_proxies`, `all` or `off`",
            Preset::Is("trusted_proxies"),
            "The clients from which a `traceparent` is continued; for others it is replaced. With `all`, \
                    clients decide what is recorded.",
            |field, draft| field.set(&mut draft.tracing.parents, word),
            |tracing| name(tracing.parents).into(),
        ),
        Key::new(
            "service",
            "text",
            Preset::Is("quadrille"),
            "The name of this gateway at the collector (`service.name`).",
            |field, draft| field.set(&mut draft.tracing.collector.service, service),
            |tracing| tracing.collector.service.as_str().into(),
        ),
    ],
};

/// Values read for tracing.
pub(super) struct Draft {
    endpoint: Option<Endpoint>,
    tls: Option<UpstreamTls>,
    tracing: Tracing,
}

/// The parts of `http://host:port/path`.
#[derive(Clone)]
struct Endpoint {
    tls: bool,
    host: String,
    port: u16,
    /// The path; empty if missing.
    path: String,
}

/// Reads a mapping, an endpoint, or `off`.
pub(super) fn tracing(field: &Field<'_>) -> Option<Tracing> {
    let mut draft = Draft { endpoint: None, tls: None, tracing: nowhere(field.place()) };
    if field.is_scalar() {
        if matches!(switch(field.text()?), Ok(false)) {
            return None;
        }
        draft.endpoint = field.parse(endpoint);
    } else {
        TRACING.read(field, &mut draft)?;
    }
    draft.finish(field)
}

fn nowhere(place: Place) -> Tracing {
    let endpoint = CollectorEndpoint { host: String::new(), port: 0, tls: None };
    Tracing::new(SpanCollector::new(CollectorServers::Endpoint(Box::new(endpoint)), place))
}

impl Draft {
    fn finish(self, field: &Field<'_>) -> Option<Tracing> {
        let Self { endpoint, tls, mut tracing } = self;
        let Endpoint { tls: is_https, host, port, path } = endpoint?;
        if let (false, Some(tls)) = (is_https, field.entry("tls")) {
            tls.error(Problem::new(
                "the endpoint is in plain text",
                "write `https://` in `endpoint`, or remove this",
            ));
        }
        let tls = is_https.then(|| tls.unwrap_or_default());
        let collector = &mut tracing.collector;
        collector.servers = CollectorServers::Endpoint(Box::new(CollectorEndpoint { host, port, tls }));
        match collector.protocol {
            TracingProtocol::Http if !path.is_empty() => collector.path = path,
            TracingProtocol::Grpc if path.len() > 1 => field
                .at("endpoint")
                .error(Problem::new("gRPC has a fixed path", "remove the path, or set `protocol: http`")),
            TracingProtocol::Http | TracingProtocol::Grpc => {}
        }
        Some(tracing)
    }
}

/// Reads an endpoint. A text that may contain a password is not quoted.
fn endpoint(text: &str) -> Result<Endpoint, Problem> {
    const FORM: &str = "write `http://` or `https://` with host and port, such as `http://127.0.0.1:4317`";
    if text.contains('@') {
        return Err(Problem::new(
            "an endpoint cannot contain a password",
            "write `headers`, such as `authorization`",
        ));
    }
    let no_endpoint = || Problem::new(format!("{} is not an endpoint", quote(text)), FORM);
    let (scheme, rest) = text.split_once("://").ok_or_else(no_endpoint)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let address = values::server_address(authority).map_err(|_| no_endpoint())?;
    let (host, port) = address.rsplit_once(':').ok_or_else(no_endpoint)?;
    let is_path = path.is_empty() || path.parse::<PathAndQuery>().is_ok();
    match (scheme, port.parse()) {
        ("http" | "https", Ok(port)) if is_path && !path.contains('#') => Ok(Endpoint {
            tls: scheme == "https",
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            path: path.to_owned(),
        }),
        _ => Err(no_endpoint()),
    }
}

/// Headers that determine the framing or the content type of a message.
const FIXED: [&str; 9] = [
    "host",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "te",
    "grpc-timeout",
    "grpc-encoding",
];

/// Reads headers. Values are secrets, and are not quoted in mistakes.
fn headers(field: &Field<'_>) -> Vec<(HeaderName, HeaderValue)> {
    if !field.is_mapping() {
        field.error(Problem::new(
            "not a mapping of names to values",
            "write `name: value` on lines of their own",
        ));
        return Vec::new();
    }
    field.entries().into_iter().filter_map(|(name, value)| header(name, &value)).collect()
}

fn header(name: &str, field: &Field<'_>) -> Option<(HeaderName, HeaderValue)> {
    let Ok(name) = HeaderName::try_from(name) else {
        return field.fail(Problem::new("not the name of a header", "write one, such as `authorization`"));
    };
    if FIXED.contains(&name.as_str()) {
        return field.fail(Problem::new("the gateway sets it", "remove it"));
    }
    match HeaderValue::from_str(field.text()?) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Some((name, value))
        }
        Err(_) => field.fail(Problem::new("not the value of a header", "write one line of ASCII")),
    }
}

fn show_endpoint(collector: &SpanCollector) -> String {
    let has_path = collector.protocol == TracingProtocol::Http && collector.path != SpanCollector::PATH;
    format!("{}{}", collector.servers, if has_path { &collector.path } else { "" })
}

fn show_tls(collector: &SpanCollector) -> Value {
    collector.tls().map_or(Value::Null, |tls| UPSTREAM_TLS.show(tls))
}

fn show_headers(collector: &SpanCollector) -> Value {
    const SECRET: &str = "[redacted]";
    if collector.headers.is_empty() {
        return Value::Null;
    }
    collector.headers.iter().map(|(name, _)| (name.as_str(), Value::from(SECRET))).collect()
}

fn service(text: &str) -> Result<String, Problem> {
    match text.is_empty() {
        true => Err(Problem::new("the name is empty", "write one, such as `edge`")),
        false => Ok(text.to_owned()),
    }
}
