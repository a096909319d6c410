//! Objects of a cluster that is watched: each replaces the one of its kind and name.

use super::{Meta, Objects, Secret};
use quadrille_config::yaml::{Entry, Node, Position, Value};
use std::sync::Arc;
use zeroize::Zeroizing;

impl Objects {
    /// Creates the state of a watched cluster: an object that is not in it does not exist.
    pub fn of_cluster() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    /// Adds an object in the form of JSON, in place of the one of its kind, namespace and name. `kind` and `apiVersion`
    /// must be in it.
    pub fn put(&mut self, object: &serde_json::Value) {
        let node = node(object);
        let meta = Meta::read(&node, &cluster(), object["kind"].as_str().unwrap_or_default());
        self.remove(&meta.kind, &meta.namespace, &meta.name);
        self.add(&node, &cluster());
    }

    /// Adds a Secret with these values, in place of the one of its name.
    pub fn put_secret(&mut self, namespace: &str, name: &str, values: Vec<(String, Zeroizing<Vec<u8>>)>) {
        self.remove("Secret", namespace, name);
        let meta = Meta::named("Secret", namespace, name, cluster());
        self.secrets.push(Secret::of_values(meta, values));
    }

    /// Removes an object, if it is known. The namespace of an IngressClass is empty.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        let stays = |meta: &Meta| !meta.is(namespace, name);
        match kind {
            "Ingress" => self.ingresses.retain(|one| stays(&one.meta)),
            "IngressClass" => self.classes.retain(|one| stays(&one.meta)),
            "Service" => self.services.retain(|one| stays(&one.meta)),
            "Secret" => self.secrets.retain(|one| stays(&one.meta)),
            "ConfigMap" => self.config_maps.retain(|one| stays(&one.meta)),
            "EndpointSlice" => self.endpoint_slices.retain(|one| stays(&one.meta)),
            _ => {}
        }
        self.unreadable.retain(|(meta, _)| meta.kind != kind || stays(meta));
    }
}

fn cluster() -> Arc<str> {
    "cluster".into()
}

fn node(value: &serde_json::Value) -> Node {
    use serde_json::Value as Json;
    let (value, plain) = match value {
        Json::Null => (Value::Null, false),
        Json::Bool(flag) => (scalar(flag.to_string()), true),
        Json::Number(number) => (scalar(number.to_string()), true),
        Json::String(text) => (scalar(text.clone()), false),
        Json::Array(items) => (Value::Sequence(items.iter().map(node).collect()), false),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| Entry {
                key: key.clone(),
                position: Position::default(),
                value: node(value),
            };
            (Value::Mapping(entries.iter().map(entry).collect()), false)
        }
    };
    Node { position: Position::default(), value, plain }
}

fn scalar(text: String) -> Value {
    Value::Scalar(Zeroizing::new(text))
}
