//! The JSON Schema, with a validator: it accepts the examples, and refuses mistakes.

use super::listener;
use crate::{
    file::{json_schema, parse},
    yaml::{self, Limits, Node, Value as Yaml},
};
use serde_json::{Map, Value};

const FULL: &str = include_str!("../../../../../examples/quadrille.yaml");
const MINIMAL: &str = include_str!("../../../../../examples/minimal.yaml");
const INSTALLED: &str = include_str!("../../../../../deploy/quadrille.yaml");

fn validator() -> jsonschema::Validator {
    let schema = json_schema();
    assert!(jsonschema::meta::is_valid(&schema), "not a schema of draft 2020-12");
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn examples_are_valid() {
    let validator = validator();
    for text in [FULL, MINIMAL, INSTALLED] {
        let found: Vec<_> = validator.iter_errors(&json(text)).map(|error| error.to_string()).collect();
        assert!(found.is_empty(), "{found:#?}\n{text}");
    }
}

#[test]
fn variables_and_extensions_are_valid() {
    let validator = validator();
    for text in [
        "x-a: {b: 1}\nlisteners: [{address: '${ADDRESS:-0.0.0.0:8443}', certificates: '${C}', respond: hi}]",
        "include: [sites/*.yaml]\nthreads: ${THREADS}\nlame_duck: ${TIME}",
        "listeners: [{address: 8443, tls: off, respond: hi}]\nupstreams: {a: {servers: [\"a:1\"], retries: 0}}",
    ] {
        assert!(validator.is_valid(&json(text)), "{text}");
    }
}

/// Mistakes that the schema finds; the program finds them, too.
#[test]
fn mistakes_are_refused() {
    let in_listener = [
        "respnd: hi",
        "respond: hi, modes: http",
        "respond: hi, mode: htttp",
        "respond: hi, mode: {}",
        "respond: hi, routes: /api",
        "respond: hi, routes: [{upstrem: a}]",
        "respond: hi, routes: [{path: [/a], respond: b}]",
        "respond: hi, routes: [{respond: {status: 99, body: x}}]",
        "respond: hi, routes: [{redirect: {scheme: ftp}}]",
        "respond: hi, routes: [{redirect: {status: 304, host: a}}]",
        "respond: hi, routes: [{timeout: 5, respond: a}]",
        "respond: hi, routes: [{headers: [{exact: a}], respond: b}]",
        "respond: hi, routes: [{headers: {name: a}, respond: b}]",
        "respond: hi, routes: [{split: [{weight: 1}]}]",
        "respond: hi, routes: [{retry: {times: 3}, respond: a}]",
        "respond: hi, tls: {min: 1.4}",
        "respond: hi, tls: {min: '1.2', maximum: 1.3}",
        "respond: hi, tls: {groups: X25519}",
        "respond: hi, tls: {client_auth: {ca: a}}",
        "respond: hi, tls: {client_auth: {mode: maybe}}",
        "respond: hi, tls: {cbc: 1}",
        "respond: hi, hsts: []",
        "respond: hi, http3: maybe",
        "respond: hi, compression: {minimum: 1kB}",
        "respond: hi, limits: {body: 10m}",
        "respond: hi, limits: {connection: 1}",
        "respond: hi, timeouts: {idle: 1y}",
        "respond: hi, timeouts: 5s",
        "respond: hi, clients: {allow: 10.0.0.0/8}",
        "respond: hi, clients: {alow: [10.0.0.0/8]}",
        "respond: hi, proxy_protocol: v1",
        "respond: hi, paths: {escaped_slashes: drop}",
        "respond: hi, rate_limits: {rate: 1/s}",
        "respond: hi, rate_limits: [{by: client}]",
        "respond: hi, match: {transport: quic}",
    ]
    .map(listener);
    let whole = [
        "upstream: {}",
        "listeners: {}",
        "listeners: [a]",
        "listeners: []",
        "listeners: [{respond: hi}]",
        "engine: {backend: fpga}",
        "threads: many",
        "drain_timeout: 30",
        "admin: [1]",
        "upstreams: [a]",
        "upstreams: {a: {}}",
        "upstreams: {a: {servers: ['b:1'], balance: best}}",
        "upstreams: {a: {servers: [{weight: 1}]}}",
        "upstreams: {a: {servers: ['b:1'], pool: 0}}",
    ]
    .map(|text| {
        format!(
            "{text}\n{}",
            if text.starts_with("listeners") { String::new() } else { listener("respond: hi") }
        )
    });
    let validator = validator();
    let accepted: Vec<_> = in_listener
        .iter()
        .chain(&whole)
        .filter(|text| {
            assert!(parse(text, "q.yaml").is_err(), "the program accepts {text}");
            validator.is_valid(&json(text))
        })
        .collect();
    assert!(in_listener.len() + whole.len() >= 40 && accepted.is_empty(), "the schema accepts {accepted:#?}");
}

/// Converts YAML as its core schema (1.2) does, with `on` and `off` as texts.
fn json(text: &str) -> Value {
    convert(&yaml::read(text, Limits::BY_HAND).unwrap().unwrap())
}

fn convert(node: &Node) -> Value {
    match &node.value {
        Yaml::Null => Value::Null,
        Yaml::Scalar(text) if node.plain => match text.parse::<Value>() {
            Ok(value) if value.is_number() || value.is_boolean() => value,
            _ => text.as_str().into(),
        },
        Yaml::Scalar(text) => text.as_str().into(),
        Yaml::Sequence(items) => items.iter().map(convert).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), convert(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
