//! Identity of this gateway towards control planes.

use prost_reflect::prost_types::{ListValue, Struct, Value as Any, value::Kind};
use quadrille_config::yaml::{Node as Tree, Value};
use quadrille_envoy::Bootstrap;
use quadrille_xds::proto::{Locality, Node};

/// Returns the bootstrap's `node`.
pub(crate) fn node(bootstrap: &Bootstrap) -> Node {
    let tree = bootstrap.node.as_ref();
    let get = |name: &str| tree.and_then(|node| node.get(name));
    Node {
        id: bootstrap.node_id.clone(),
        cluster: bootstrap.node_cluster.clone(),
        metadata: get("metadata").map(structure),
        locality: get("locality").map(locality),
        user_agent_name: "quadrille".to_owned(),
        user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        client_features: Vec::new(),
    }
}

fn locality(tree: &Tree) -> Locality {
    let text = |name: &str| tree.get(name).and_then(Tree::text).unwrap_or_default().to_owned();
    let sub_zone = if tree.get("sub_zone").is_some() { text("sub_zone") } else { text("subZone") };
    Locality { region: text("region"), zone: text("zone"), sub_zone }
}

fn structure(tree: &Tree) -> Struct {
    let Value::Mapping(entries) = &tree.value else { return Struct::default() };
    Struct { fields: entries.iter().map(|entry| (entry.key.clone(), value(&entry.value))).collect() }
}

/// Gives an unquoted value the type that JSON gives it: istiod rejects a port that is sent as text.
fn value(tree: &Tree) -> Any {
    let kind = match &tree.value {
        Value::Null => Kind::NullValue(0),
        Value::Scalar(text) if tree.plain => plain(text),
        Value::Scalar(text) => Kind::StringValue(text.to_string()),
        Value::Sequence(items) => Kind::ListValue(ListValue { values: items.iter().map(value).collect() }),
        Value::Mapping(_) => Kind::StructValue(structure(tree)),
    };
    Any { kind: Some(kind) }
}

/// Parses an unquoted scalar. `off`, `1.2.3` and `0x10` are text, regardless of YAML's older schemas.
fn plain(text: &str) -> Kind {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match text {
        "true" => Kind::BoolValue(true),
        "false" => Kind::BoolValue(false),
        _ => match text.parse::<f64>().ok().filter(|_| is_number) {
            Some(number) => Kind::NumberValue(number),
            None => Kind::StringValue(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::yaml::{Limits, read};

    #[test]
    fn metadata_keeps_its_types() {
        let text =
            r#"{ "A": 15090, "B": "15090", "C": true, "D": "true", "E": [ 1.5, "x" ], "F": { "g": null } }"#;
        let fields = structure(&read(text, Limits::BY_PROGRAM).unwrap().unwrap()).fields;
        let kind = |name: &str| fields[name].kind.clone().unwrap();
        assert_eq!(kind("A"), Kind::NumberValue(15090.0));
        assert_eq!(kind("B"), Kind::StringValue("15090".to_owned()));
        assert_eq!((kind("C"), kind("D")), (Kind::BoolValue(true), Kind::StringValue("true".to_owned())));
        let Kind::ListValue(list) = kind("E") else { panic!("no list") };
        assert_eq!(list.values[0].kind, Some(Kind::NumberValue(1.5)));
        let Kind::StructValue(inner) = kind("F") else { panic!("no struct") };
        assert_eq!(inner.fields["g"].kind, Some(Kind::NullValue(0)));
        let yaml =
            read("{ a: 1.2.3, b: off, c: inf, d: -7, e: 2026-01-02 }", Limits::BY_HAND).unwrap().unwrap();
        let fields = structure(&yaml).fields;
        for (name, expected) in [("a", "1.2.3"), ("b", "off"), ("c", "inf"), ("e", "2026-01-02")] {
            assert_eq!(fields[name].kind, Some(Kind::StringValue(expected.to_owned())), "{name}");
        }
        assert_eq!(fields["d"].kind, Some(Kind::NumberValue(-7.0)));
    }
}
