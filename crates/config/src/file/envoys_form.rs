//! Recognition of Envoy's configuration by its keys.

use crate::{
    Problem,
    model::{Origin, Place},
    yaml::{self, Limits, Node, Value},
};
use std::path::Path;

/// Keys of an Envoy bootstrap that a configuration of the gateway does not have.
const ENVOYS: [&str; 4] = ["static_resources", "dynamic_resources", "layered_runtime", "cluster_manager"];

/// Returns the mistake that an Envoy bootstrap is given where a configuration of the gateway is expected.
pub(super) fn problem(root: &Node, origin: &Origin) -> Option<(Place, Problem)> {
    let (key, node) = envoys(root)?;
    let file = match origin {
        Origin::File(name) => name,
        _ => "FILE",
    };
    let remedy = format!(
        "serve it by `quadrille serve --envoy-config {file}`, check it by `quadrille check --envoy-config {file}`"
    );
    Some((Place::at(origin, node.position, key), Problem::new("this is an Envoy bootstrap", remedy)))
}

/// Returns whether this file is a configuration of the gateway, by its keys; false if it cannot be read.
pub fn is_native(path: &Path) -> bool {
    let Ok(text) = super::text::read_text(path) else { return false };
    match yaml::read(&text, Limits::BY_PROGRAM) {
        Ok(Some(root)) => {
            let native = ["listeners", "include", "upstreams"];
            envoys(&root).is_none() && native.iter().any(|key| root.get(key).is_some())
        }
        _ => false,
    }
}

fn envoys(root: &Node) -> Option<(&'static str, &Node)> {
    let known = ENVOYS.into_iter().find_map(|key| Some((key, root.get(key)?)));
    let address = || root.get("admin")?.get("address");
    let is_mapping = |node: &&Node| matches!(node.value, Value::Mapping(_));
    known.or_else(|| Some(("admin.address", address().filter(is_mapping)?)))
}
