//! Tracing settings of connection managers and routes.

use crate::{
    common::time_limit,
    fraction::fraction,
    grpc_service::envoy_grpc,
    reader::{Field, Message, ReadMessage},
    schema,
    values::enumeration,
};
use ::http::{HeaderName, HeaderValue, Uri};
use quadrille_config::{
    Problem,
    model::{
        CollectorServers, HttpTracing, RouteTracing, SpanCollector, TraceSampling, TraceShare, TraceTag,
        TraceTagValue, TracingProtocol,
    },
    quote,
};

const OPEN_TELEMETRY: &str = schema::OPEN_TELEMETRY.name;
/// Envoy's default service name.
const SERVICE: &str = "unknown_service:envoy";
const LONGEST_PATH: usize = 256;
/// Denominator of `random_sampling` and `overall_sampling`.
const TEN_THOUSAND: f64 = 10_000.0;

/// Reads `...HttpConnectionManager.Tracing`; `Some(None)` creates no spans. `attempts`: the router wants a span for
/// each.
pub(crate) fn http_tracing(message: &Message<'_>, attempts: bool) -> Option<Option<HttpTracing>> {
    let Some(field) = message.get("tracing") else { return Some(None) };
    let tracing = field.message(&schema::HTTP_TRACING)?;
    let own_hop = tracing.flag("spawn_upstream_span");
    let collector = match tracing.get("provider") {
        Some(provider) => collector(&provider)?,
        None => None,
    };
    let sampling = TraceSampling {
        client: share(&tracing, "client_sampling", 100.0)?,
        random: share(&tracing, "random_sampling", TEN_THOUSAND)?,
        overall: share(&tracing, "overall_sampling", TEN_THOUSAND)?,
    };
    let tags = tags(&tracing)?;
    let longest_path = tracing.number("max_path_tag_length").map_or(LONGEST_PATH, |length| length as usize);
    Some(collector.map(|collector| HttpTracing {
        collector,
        sampling,
        outbound: false,
        attempts: attempts || own_hop,
        own_hop,
        tags,
        longest_path,
    }))
}

/// Reads `envoy.config.route.v3.Tracing` and the `Decorator` of a route; `Some(None)` if unset.
pub(crate) fn route_tracing(message: &Message<'_>) -> Option<Option<RouteTracing>> {
    let (decorator, tracing) = (message.get("decorator"), message.get("tracing"));
    if decorator.is_none() && tracing.is_none() {
        return Some(None);
    }
    let mut route = RouteTracing::default();
    if let Some(decorator) = decorator {
        let decorator = decorator.message(&schema::DECORATOR)?;
        route.operation = decorator.string("operation");
        route.propagate = decorator.get("propagate").is_none() || decorator.flag("propagate");
    }
    if let Some(tracing) = tracing {
        let tracing = tracing.message(&schema::ROUTE_TRACING)?;
        route.sampling = Some(TraceSampling {
            client: route_share(&tracing, "client_sampling")?,
            random: route_share(&tracing, "random_sampling")?,
            overall: route_share(&tracing, "overall_sampling")?,
        });
        route.tags = tags(&tracing)?;
    }
    Some(Some(route))
}

/// Reads `envoy.type.v3.Percent`; `all` is the value for 100 %.
fn share(message: &Message<'_>, name: &'static str, all: f64) -> Option<TraceShare> {
    let denominator = all as u32;
    let Some(field) = message.get(name) else {
        return Some(TraceShare { numerator: denominator, denominator });
    };
    let percent = match field.message(&schema::PERCENT)?.get("value") {
        Some(value) => value.parse(percentage)?,
        None => 0.0,
    };
    Some(TraceShare { numerator: (percent / 100.0 * all).round() as u32, denominator })
}

fn percentage(text: &str) -> Result<f64, Problem> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| Problem::new(format!("{} is not a percentage", quote(text)), "write 0 to 100"))
}

fn route_share(message: &Message<'_>, name: &'static str) -> Option<TraceShare> {
    const DENOMINATORS: &[(&str, u32, u32)] =
        &[("HUNDRED", 0, 100), ("TEN_THOUSAND", 1, 10_000), ("MILLION", 2, 1_000_000)];
    let Some(field) = message.get(name) else { return Some(TraceShare::ALL) };
    // The value is validated as usual; its denominator determines the sampled requests.
    fraction(&field)?;
    let fraction = field.message(&schema::FRACTIONAL_PERCENT)?;
    let numerator = fraction.number("numerator").unwrap_or(0);
    let denominator = fraction.read("denominator", enumeration(DENOMINATORS)).unwrap_or(100);
    Some(TraceShare { numerator, denominator })
}

fn tags(message: &Message<'_>) -> Option<Vec<TraceTag>> {
    let tags: Option<Vec<_>> = message.list("custom_tags").iter().map(tag).collect();
    Some(tags?.into_iter().flatten().collect())
}

/// Reads `envoy.type.tracing.v3.CustomTag`; `Some(None)` if its type has no effect here.
fn tag(field: &Field<'_>) -> Option<Option<TraceTag>> {
    let message = field.message(&schema::CUSTOM_TAG)?;
    let name_field = message.require("tag")?;
    let name = name_field.text()?.to_owned();
    if name.is_empty() {
        return name_field.fail("a tag requires a name");
    }
    let value = match message.one_of(&["literal", "request_header", "environment"]) {
        Some(("literal", literal)) => {
            TraceTagValue::Literal(literal.message(&schema::LITERAL_TAG)?.string("value"))
        }
        Some(("request_header", header)) => {
            let (name, default) = named(&header)?;
            match HeaderName::try_from(name) {
                Ok(name) => TraceTagValue::RequestHeader(name, default),
                Err(_) => return header.fail("not a header name"),
            }
        }
        Some((_, variable)) => match (named(&variable)?, field.is_trusted()) {
            ((name, default), true) => TraceTagValue::Environment(name, default),
            ((_, Some(default)), false) => TraceTagValue::Literal(default),
            ((..), false) => return Some(None),
        },
        None => return Some(None),
    };
    Some(Some(TraceTag { name, value }))
}

fn named(field: &Field<'_>) -> Option<(String, Option<String>)> {
    let message = field.message(&schema::NAMED_TAG)?;
    let name = message.require("name")?.text()?.to_owned();
    let default = message.string("default_value");
    Some((name, Some(default).filter(|default| !default.is_empty())))
}

/// Reads `envoy.config.trace.v3.Tracing.Http`; `Some(None)` exports no spans.
fn collector(field: &Field<'_>) -> Option<Option<SpanCollector>> {
    let provider = field.message(&schema::TRACING_PROVIDER)?;
    let Some(config) = provider.get("typed_config") else {
        field.warn("tracing.provider", "ignored: without `typed_config` there is no collector");
        return Some(None);
    };
    let (kind, config) = config.any()?;
    if kind != OPEN_TELEMETRY {
        field.warn(
            &format!("tracing {kind}"),
            format!("ignored: {} is not supported; use `{OPEN_TELEMETRY}`", quote(kind)),
        );
        return Some(None);
    }
    let message = config.message(&schema::OPEN_TELEMETRY)?;
    let mut collector = match message.one_of(&["grpc_service", "http_service"]) {
        Some(("grpc_service", service)) => grpc_service(&service)?,
        Some((_, service)) => http_service(&service)?,
        None => return config.fail("`grpc_service` or `http_service` is missing"),
    };
    let service = message.string("service_name");
    collector.service = if service.is_empty() { SERVICE.into() } else { service };
    Some(Some(collector))
}

fn grpc_service(field: &Field<'_>) -> Option<SpanCollector> {
    let message = field.message(&schema::TRACING_GRPC_SERVICE)?;
    let (name, authority) = envoy_grpc(&message)?;
    let timeout = time_limit(&message, SpanCollector::TIMEOUT)?;
    let headers = message.list("initial_metadata").iter().map(header).collect::<Option<Vec<_>>>()?;
    let servers = CollectorServers::Upstream { name, authority };
    Some(SpanCollector { headers, timeout, ..SpanCollector::new(servers, field.place()) })
}

fn http_service(field: &Field<'_>) -> Option<SpanCollector> {
    let message = field.message(&schema::TRACING_HTTP_SERVICE)?;
    let address = message.require("http_uri")?.message(&schema::HTTP_URI)?;
    let uri_field = address.require("uri")?;
    let uri = uri_field.parse(|text| {
        text.parse::<Uri>().ok().filter(|uri| uri.authority().is_some()).ok_or_else(|| {
            Problem::new(format!("{} is not a URL", quote(text)), "write `http://host/v1/traces`")
        })
    })?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let servers =
        CollectorServers::Upstream { name: address.require("cluster")?.text()?.to_owned(), authority };
    let options = message.list("request_headers_to_add");
    let headers = options.iter().map(|option| {
        let option = option.message(&schema::TRACING_HEADER)?;
        header(&option.require("header")?)
    });
    Some(SpanCollector {
        protocol: TracingProtocol::Http,
        path: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        headers: headers.collect::<Option<Vec<_>>>()?,
        timeout: time_limit(&address, SpanCollector::TIMEOUT)?,
        ..SpanCollector::new(servers, field.place())
    })
}

/// Reads a header. Errors do not contain its value, which may be an API key.
fn header(field: &Field<'_>) -> Option<(HeaderName, HeaderValue)> {
    let message = field.message(&schema::HEADER_VALUE)?;
    let (name, value) = (message.require("key")?, message.require("value")?);
    let text = value.text()?;
    if text.contains('%') {
        return value.fail("refused: variables are not substituted here");
    }
    match (HeaderName::try_from(name.text()?), HeaderValue::from_str(text)) {
        (Ok(name), Ok(mut value)) => {
            value.set_sensitive(true);
            Some((name, value))
        }
        _ => field.fail("not a header"),
    }
}
