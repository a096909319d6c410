//! Fields of objects.

use quadrille_config::yaml::{Node, Position, Value};

/// Returns the line of a position; 0 if it has none.
pub(super) fn line(position: Position) -> usize {
    usize::try_from(position.line).unwrap_or(0)
}

/// Returns the text under this key, empty if it is missing.
pub(super) fn text(node: &Node, key: &str) -> String {
    node.get(key).and_then(Node::text).unwrap_or_default().to_owned()
}

/// Returns the items under this key.
pub(super) fn items<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    match node.get(key).map(|node| &node.value) {
        Some(Value::Sequence(items)) => items,
        _ => &[],
    }
}

/// Returns the entries under this key that have single values.
pub(super) fn entries(node: &Node, key: &str) -> Vec<(String, String)> {
    match node.get(key).map(|node| &node.value) {
        Some(Value::Mapping(entries)) => {
            entries.iter().filter_map(|one| Some((one.key.clone(), one.value.text()?.to_owned()))).collect()
        }
        _ => Vec::new(),
    }
}
