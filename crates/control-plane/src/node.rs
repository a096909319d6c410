//! Who this gateway is, for control planes.

use prost_reflect::prost_types::{ListValue, Struct, Value as Any, value::Kind};
use quadrille_config::yaml::{Node as Tree, Value};
use quadrille_envoy::Bootstrap;
use quadrille_xds::proto::{Locality, Node};

/// The bootstrap's `node`.
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

/// Every scalar is text. The tree does not know what was quoted, and of the two mistakes this is the harmless one:
/// Istio writes its metadata as text, numbers included.
fn value(tree: &Tree) -> Any {
    let kind = match &tree.value {
        Value::Null => Kind::NullValue(0),
        Value::Scalar(text) => Kind::StringValue(text.to_string()),
        Value::Sequence(items) => Kind::ListValue(ListValue { values: items.iter().map(value).collect() }),
        Value::Mapping(_) => Kind::StructValue(structure(tree)),
    };
    Any { kind: Some(kind) }
}
