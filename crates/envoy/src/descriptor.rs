//! Rate limit descriptors generated from requests.

use crate::{
    common::cidr_range,
    metadata::writer,
    reader::{Field, Message, ReadMessage},
    request_condition::{header_matcher, query_matcher},
    schema,
    values::{enumeration, number},
};
use quadrille_config::{
    Problem,
    model::{
        Descriptor, DescriptorCondition, DescriptorLimit, DescriptorPart, DescriptorValue, HostDescriptors,
    },
};

const LAST_STAGE: u32 = 10;

/// Reads the `rate_limits` of a route or of a virtual host, each of which counts as one request.
pub(crate) fn descriptors(message: &Message<'_>) -> Option<Vec<Descriptor>> {
    let mut read = all(message, |stage| stage.parse(read_stage))?;
    read.iter_mut().for_each(|descriptor| descriptor.hits = None);
    Some(read)
}

/// Reads the `rate_limits` of a filter, which have no stages.
pub(crate) fn descriptors_of_filter(message: &Message<'_>) -> Option<Vec<Descriptor>> {
    all(message, |stage| stage.fail("stages are not supported within a filter"))
}

fn all(message: &Message<'_>, stage: impl Fn(&Field<'_>) -> Option<u8>) -> Option<Vec<Descriptor>> {
    let read = message.list("rate_limits").into_iter().map(|field| descriptor(&field, &stage));
    read.collect::<Vec<_>>().into_iter().collect()
}

/// Reads `envoy.config.route.v3.RateLimit`.
fn descriptor(field: &Field<'_>, stage: impl Fn(&Field<'_>) -> Option<u8>) -> Option<Descriptor> {
    let message = field.message(&schema::RATE_LIMIT)?;
    let actions = message.list("actions");
    if actions.is_empty() {
        return field.fail("`actions` is missing");
    }
    let stage = message.get("stage").map_or(Some(0), |field| stage(&field))?;
    let parts = actions.iter().map(part).collect::<Vec<_>>().into_iter().collect::<Option<_>>()?;
    Some(Descriptor { stage, parts, limit: limit(&message)?, hits: hits(&message)? })
}

/// Reads the `vh_rate_limits` of a filter: the virtual host descriptors that it uses.
pub(crate) fn host_descriptors(message: &Message<'_>) -> Option<HostDescriptors> {
    const HOSTS: &[(&str, u32, HostDescriptors)] = &[
        ("OVERRIDE", 0, HostDescriptors::UnlessOwn),
        ("INCLUDE", 1, HostDescriptors::Always),
        ("IGNORE", 2, HostDescriptors::Never),
    ];
    let host = message.get("vh_rate_limits");
    host.map_or(Some(HostDescriptors::default()), |host| host.parse(enumeration(HOSTS)))
}

/// Reads the stage of a filter or of a descriptor.
pub(crate) fn read_stage(text: &str) -> Result<u8, Problem> {
    let stage = number(text)?;
    u8::try_from(stage)
        .ok()
        .filter(|_| stage <= LAST_STAGE)
        .ok_or_else(|| Problem::new(format!("{stage} is not a stage"), format!("write 0 to {LAST_STAGE}")))
}

fn limit(message: &Message<'_>) -> Option<Option<DescriptorLimit>> {
    const UNITS: &[(&str, u32, u8)] =
        &[("SECOND", 1, 1), ("MINUTE", 2, 2), ("HOUR", 3, 3), ("DAY", 4, 4), ("MONTH", 5, 5), ("YEAR", 6, 6)];
    let Some(field) = message.get("limit") else { return Some(None) };
    let limit = field.message(&schema::RATE_LIMIT_OVERRIDE)?.require("rate_limit")?;
    let limit = limit.message(&schema::RATE_LIMIT_OVERRIDE_VALUE)?;
    let requests = match limit.get("requests_per_unit") {
        Some(requests) => requests.parse(number)?,
        None => 0,
    };
    let unit = limit.require("unit")?.parse(enumeration(UNITS))?;
    Some(Some(DescriptorLimit { requests, unit }))
}

fn hits(message: &Message<'_>) -> Option<Option<u64>> {
    const MOST: u32 = 1_000_000_000;
    let Some(field) = message.get("hits_addend") else { return Some(None) };
    let Some(count) = field.message(&schema::RATE_LIMIT_HITS)?.get("number") else { return Some(None) };
    match count.parse(number)? {
        0..=MOST => count.parse(number).map(|hits| Some(hits.into())),
        _ => count.fail(format!("write at most {MOST}")),
    }
}

const ACTIONS: &[&str] = &[
    "destination_cluster",
    "request_headers",
    "query_parameters",
    "remote_address",
    "generic_key",
    "header_value_match",
    "metadata",
    "masked_remote_address",
    "query_parameter_value_match",
    "remote_address_match",
];

/// Reads `envoy.config.route.v3.RateLimit.Action`.
fn part(field: &Field<'_>) -> Option<DescriptorPart> {
    let message = field.message(&schema::RATE_LIMIT_ACTION)?;
    let Some((kind, field)) = message.one_of(ACTIONS) else {
        return field
            .fail(Problem::new("no action is set", "write one action, such as `remote_address: {}`"));
    };
    match kind {
        "destination_cluster" => bare(&field, kind, DescriptorValue::Upstream),
        "remote_address" => bare(&field, kind, DescriptorValue::Client),
        "masked_remote_address" => network(&field),
        "request_headers" => header(&field),
        "query_parameters" => query(&field),
        "generic_key" => {
            let message = field.message(&schema::RATE_LIMIT_GENERIC_KEY)?;
            Some(required(key(&message, "generic_key"), DescriptorValue::Text(text(&message)?)))
        }
        "header_value_match" => {
            let message = field.message(&schema::RATE_LIMIT_HEADER_MATCH)?;
            let headers = conditions(&message, "headers", header_matcher)?;
            let condition = DescriptorCondition::Headers(headers, expected(&message));
            Some(required(key(&message, "header_match"), DescriptorValue::If(condition, text(&message)?)))
        }
        "query_parameter_value_match" => {
            let message = field.message(&schema::RATE_LIMIT_QUERY_MATCH)?;
            let parameters = conditions(&message, "query_parameters", query_matcher)?;
            let condition = DescriptorCondition::Query(parameters, expected(&message));
            Some(required(key(&message, "query_match"), DescriptorValue::If(condition, text(&message)?)))
        }
        "remote_address_match" => {
            let message = field.message(&schema::RATE_LIMIT_ADDRESS_MATCH)?;
            let matcher = message.require("address_matcher")?.message(&schema::ADDRESS_MATCHER)?;
            let networks = conditions(&matcher, "ranges", cidr_range)?;
            let condition = DescriptorCondition::Client(networks, !matcher.flag("invert_match"));
            let value = DescriptorValue::If(condition, text(&message)?);
            Some(required(key(&message, "remote_address_match"), value))
        }
        _ => metadata(&field),
    }
}

fn bare(field: &Field<'_>, key: &str, value: DescriptorValue) -> Option<DescriptorPart> {
    field.message(&schema::RATE_LIMIT_BARE_ACTION)?;
    Some(required(key.to_owned(), value))
}

fn required(key: String, value: DescriptorValue) -> DescriptorPart {
    DescriptorPart { key, value, optional: false }
}

fn network(field: &Field<'_>) -> Option<DescriptorPart> {
    let message = field.message(&schema::RATE_LIMIT_MASKED_ADDRESS)?;
    let bits = |name: &'static str, most: u8| match message.get(name) {
        Some(bits) => bits.parse(|text| match u8::try_from(number(text)?) {
            Ok(bits) if bits <= most => Ok(bits),
            _ => Err(format!("this type of address has {most} bits").into()),
        }),
        None => Some(most),
    };
    let value =
        DescriptorValue::ClientNetwork(bits("v4_prefix_mask_len", 32)?, bits("v6_prefix_mask_len", 128)?);
    Some(required("masked_remote_address".to_owned(), value))
}

fn header(field: &Field<'_>) -> Option<DescriptorPart> {
    let message = field.message(&schema::RATE_LIMIT_HEADER)?;
    let name = message.require("header_name")?.text()?.to_ascii_lowercase();
    let key = message.require("descriptor_key")?.text()?.to_owned();
    Some(DescriptorPart {
        key,
        value: DescriptorValue::Header(name),
        optional: message.flag("skip_if_absent"),
    })
}

fn query(field: &Field<'_>) -> Option<DescriptorPart> {
    let message = field.message(&schema::RATE_LIMIT_QUERY)?;
    let name = message.require("query_parameter_name")?.text()?.to_owned();
    let key = message.require("descriptor_key")?.text()?.to_owned();
    Some(DescriptorPart {
        key,
        value: DescriptorValue::Query(name),
        optional: message.flag("skip_if_absent"),
    })
}

/// Reads `envoy.config.route.v3.RateLimit.Action.MetaData`.
fn metadata(field: &Field<'_>) -> Option<DescriptorPart> {
    const SOURCES: &[(&str, u32, ())] = &[("DYNAMIC", 0, ())];
    let message = field.message(&schema::RATE_LIMIT_METADATA)?;
    if let Some(source) = message.get("source") {
        source.parse(enumeration(SOURCES))?;
    }
    let key = message.require("descriptor_key")?.text()?.to_owned();
    let place = message.require("metadata_key")?.message(&schema::METADATA_KEY)?;
    let filter = writer(&place.require("key")?, "no requests would be counted")?;
    let segment = |segment: &Field<'_>| {
        let key = segment.message(&schema::METADATA_KEY_SEGMENT)?.require("key")?;
        key.text().map(str::to_owned)
    };
    let way = conditions(&place, "path", segment)?;
    let value = DescriptorValue::Metadata(filter, way, message.string("default_value"));
    Some(DescriptorPart { key, value, optional: message.flag("skip_if_absent") })
}

/// Reads the key, or returns the default.
fn key(message: &Message<'_>, preset: &str) -> String {
    let key = message.string("descriptor_key");
    if key.is_empty() { preset.to_owned() } else { key }
}

/// Reads a literal value: stock Envoy 1.40 does not expand `%...%` either.
fn text(message: &Message<'_>) -> Option<String> {
    message.require("descriptor_value")?.text().map(str::to_owned)
}

/// Reads a wrapped boolean, which defaults to true.
fn expected(message: &Message<'_>) -> bool {
    message.get("expect_match").is_none() || message.flag("expect_match")
}

/// Reads a list of at least one condition.
fn conditions<T>(
    message: &Message<'_>,
    name: &'static str,
    read: impl Fn(&Field<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let fields = message.list(name);
    if fields.is_empty() {
        return message.field().fail(format!("`{name}` is missing"));
    }
    fields.iter().map(read).collect()
}
