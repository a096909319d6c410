use super::*;
use crate::{Limits, ResourceType};
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use quadrille_config::yaml::Value;
use serde_json::{Value as Json, json};

/// A resource, serialised as by a control plane.
fn any(message: &str, json: Json) -> Any {
    let descriptor = descriptors().get_message_by_name(message).unwrap();
    let message = DynamicMessage::deserialize(descriptor, json).unwrap();
    let type_url = format!("type.googleapis.com/{}", message.descriptor().full_name());
    Any { type_url, value: message.encode_to_vec() }
}

fn read(any: &Any) -> Result<Decoded, DecodeError> {
    decode(any, &mut Budget::new(&Limits::default()))
}

fn as_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Scalar(text) => json!(text.as_str()),
        Value::Sequence(items) => items.iter().map(as_json).collect(),
        Value::Mapping(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), as_json(&entry.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// Converts numbers and booleans to text, as in the tree.
fn as_text(json: Json) -> Json {
    match json {
        Json::Bool(_) | Json::Number(_) => json!(json.to_string()),
        Json::Array(items) => items.into_iter().map(as_text).collect(),
        Json::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| (key, as_text(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// A listener with nearly every kind of type: nested `Any`s, wrappers, durations, maps, structs, enums, bytes.
fn listener() -> Json {
    json!({
        "name": "https",
        "address": { "socket_address": { "address": "0.0.0.0", "port_value": 8443 } },
        "per_connection_buffer_limit_bytes": 32768,
        "listener_filters_timeout": "0.010s",
        "metadata": { "filter_metadata": { "istio": { "a": [1.5, true, null, "x", { "b": {} }], "c": "d" } } },
        "traffic_direction": "INBOUND",
        "listener_filters": [{
            "name": "envoy.filters.listener.tls_inspector",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector" },
        }],
        "filter_chains": [{
            "filter_chain_match": { "server_names": ["example.com"], "prefix_ranges": [{ "address_prefix": "10.0.0.0", "prefix_len": 8 }] },
            "transport_socket": {
                "name": "envoy.transport_sockets.tls",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                    "require_client_certificate": false,
                    "common_tls_context": {
                        "tls_params": { "tls_minimum_protocol_version": "TLSv1_2" },
                        "tls_certificates": [{
                            "certificate_chain": { "inline_bytes": "AAEC/w==" },
                            "private_key_provider": {
                                "provider_name": "cryptomb",
                                "typed_config": {
                                    "@type": "type.googleapis.com/envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig",
                                    "private_key": { "filename": "/etc/key.pem" },
                                    "poll_delay": "0s",
                                },
                            },
                        }],
                    },
                },
            },
            "filters": [{
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                    "stat_prefix": "in",
                    "rds": { "route_config_name": "r", "config_source": { "ads": {} } },
                    "http_filters": [{
                        "name": "istio.stats",
                        "typed_config": {
                            "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
                            "type_url": "type.googleapis.com/stats.PluginConfig",
                            "value": { "disable_host_header_fallback": true },
                        },
                    }],
                },
            }],
        }],
    })
}

#[test]
fn a_tree_is_what_the_same_resource_is_in_json() {
    let decoded = read(&any(ResourceType::Listener.message(), listener())).unwrap();
    let mut expected = as_text(listener());
    expected["@type"] = json!(ResourceType::Listener.type_url());
    // Default values, which protobuf does not write.
    let chain = &mut expected["filter_chains"][0];
    chain["transport_socket"]["typed_config"]["require_client_certificate"] = json!("false");
    expected["listener_filters_timeout"] = json!("0.01s");
    expected["metadata"]["filter_metadata"]["istio"]["a"][2] = Json::Null;
    assert_eq!(as_json(&decoded.tree), expected);
    assert_eq!(decoded.unknown, [""; 0]);
}

#[test]
fn what_stays_away_is_absent_and_a_wrapped_zero_is_there() {
    let cluster =
        json!({ "name": "c", "max_requests_per_connection": 0, "connect_timeout": "-1.000000001s" });
    let tree = as_json(&read(&any(ResourceType::Cluster.message(), cluster)).unwrap().tree);
    let expected = json!({
        "@type": ResourceType::Cluster.type_url(), "name": "c", "max_requests_per_connection": "0",
        "connect_timeout": "-1.000000001s",
    });
    assert_eq!(tree, expected);
}

#[test]
fn a_type_that_is_not_known_stays_opaque() {
    let mut filter = Vec::new();
    Any { type_url: "type.googleapis.com/no.such.Filter".into(), value: b"\x01\x02".to_vec() }
        .encode(&mut filter)
        .unwrap();
    // Listener.filter_chains (3) . filters (3) . typed_config (4)
    let value = nested(&[3, 3, 4], &filter);
    let tree = as_json(&read(&Any { type_url: ResourceType::Listener.type_url(), value }).unwrap().tree);
    let config = &tree["filter_chains"][0]["filters"][0]["typed_config"];
    assert_eq!(*config, json!({ "@type": "type.googleapis.com/no.such.Filter", "value": "AQI=" }));
}

/// This filter would stay opaque, and be rejected later, without its descriptor.
#[test]
fn a_filter_that_the_descriptors_have_is_read() {
    const LIMIT: &str = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
    let settings = json!({
        "stat_prefix": "s",
        "status": { "code": "ServiceUnavailable" },
        "token_bucket": { "max_tokens": 10, "tokens_per_fill": 5, "fill_interval": "60s" },
        "filter_enabled": { "default_value": { "numerator": 100 } },
        "descriptors": [{ "entries": [{ "key": "a", "value": "b" }], "token_bucket": { "max_tokens": 1 } }],
    });
    let tree = as_json(&read(&any(LIMIT, settings.clone())).unwrap().tree);
    let mut expected = as_text(settings);
    expected["@type"] = json!(format!("type.googleapis.com/{LIMIT}"));
    assert_eq!(tree, expected);
}

#[test]
fn fields_that_are_not_known_are_named_with_their_path() {
    let value = nested(&[3, 3], &[0xf8, 0x3f, 0x01]);
    let decoded = read(&Any { type_url: ResourceType::Listener.type_url(), value }).unwrap();
    assert_eq!(decoded.unknown, ["filter_chains[0].filters[0]: field 1023"]);
}

#[test]
fn mistakes_are_named_with_their_path() {
    let fault = |path: &[u32], inner: &[u8]| {
        let value = nested(path, inner);
        read(&Any { type_url: ResourceType::Listener.type_url(), value }).unwrap_err().to_string()
    };
    // Listener.name (1), Listener.filter_chains (3), FilterChain.filters (3), Filter.name (1).
    assert_eq!(fault(&[3, 3, 1], b"\xff\xfe"), "filter_chains[0].filters[0].name: text is not valid UTF-8");
    assert_eq!(
        fault(&[3, 3], b"\x08\x01"),
        "filter_chains[0].filters[0].name: wrong wire type for the field name"
    );
    assert_eq!(
        fault(&[3, 3], b"\x0a\x01a\x0a\x01b"),
        "filter_chains[0].filters[0].name: given more than once"
    );
    assert_eq!(fault(&[3], b"\x0a\x7f"), "filter_chains[0]: not a protobuf message: it ends within a field");
    assert_eq!(fault(&[], b"\x0b"), "not a protobuf message: a field has a wire type that is not in proto3");
    assert_eq!(fault(&[], b"\x02\x00"), "not a protobuf message: a field number is out of range");
    assert_eq!(fault(&[], &[0xff; 11]), "not a protobuf message: a number is longer than 64 bits");
    // Listener.listener_filters_timeout (15): more nanoseconds than a second has.
    assert_eq!(
        fault(&[15], b"\x10\x80\x94\xeb\xdc\x03"),
        "listener_filters_timeout: the duration is out of range"
    );
    let other = Any { type_url: "type.googleapis.com/no.such.Resource".into(), value: Vec::new() };
    assert!(read(&other).unwrap_err().to_string().contains("no.such.Resource"));
}

#[test]
fn two_of_a_oneof_are_refused() {
    // Address: socket_address (1) and pipe (2).
    let value = nested(&[2], b"\x0a\x00\x12\x00");
    let fault = read(&Any { type_url: ResourceType::Listener.type_url(), value }).unwrap_err().to_string();
    assert_eq!(fault, "address.pipe: given more than once");
}

#[test]
fn depth_and_size_are_bounded() {
    // google.protobuf.Value.list_value (6) . values (1), repeated.
    let path: Vec<u32> = [6, 1].into_iter().cycle().take(4000).collect();
    let value = nested(&path, b"");
    let deep = Any { type_url: "type.googleapis.com/google.protobuf.Value".into(), value };
    assert_eq!(read(&deep).unwrap_err().fault, Fault::TooDeep);

    let limits = Limits { nodes: 1000, ..Limits::default() };
    let many = Any { type_url: ResourceType::Listener.type_url(), value: b"\x1a\x00".repeat(1000) };
    let mut budget = Budget::new(&limits);
    assert_eq!(decode(&many, &mut budget).unwrap_err().fault, Fault::TooLarge);
    // Packed numbers take a byte each. HeaderMatcher... RetryPolicy.retriable_status_codes (7) of VirtualHost (16).
    let packed = nested(&[2, 16, 7], &[1; 2000]);
    let packed = Any { type_url: ResourceType::Routes.type_url(), value: packed };
    assert_eq!(decode(&packed, &mut Budget::new(&limits)).unwrap_err().fault, Fault::TooLarge);
}

/// No input makes the decoder panic or read beyond its end. Deterministic, so that a failure is reproducible.
#[test]
fn broken_messages_are_refused_or_read_but_nothing_worse() {
    let whole = any(ResourceType::Listener.message(), listener());
    for end in 0..whole.value.len() {
        let _ = read(&Any { type_url: whole.type_url.clone(), value: whole.value[..end].to_vec() });
    }
    let mut random = fastrand::Rng::with_seed(7);
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..20_000 {
        let mut value = whole.value.clone();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..value.len());
            match random.u8(..4) {
                0 => value[at] = random.u8(..),
                1 => value[at] ^= 1 << random.u8(..8),
                2 => value.insert(at, random.u8(..)),
                _ => drop(value.remove(at)),
            }
        }
        match read(&Any { type_url: whole.type_url.clone(), value }) {
            Ok(_) => taken += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000 && taken > 100, "{refused} refused, {taken} taken: the mutations test nothing");
}

/// Wraps `inner` in messages, each of which is this field of the previous one.
fn nested(path: &[u32], inner: &[u8]) -> Vec<u8> {
    path.iter().rev().fold(inner.to_vec(), |inner, &number| {
        let mut outer = Vec::new();
        prost::encoding::bytes::encode(number, &inner, &mut outer);
        outer
    })
}
