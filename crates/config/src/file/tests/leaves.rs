//! Comparison of models: every leaf of the model counts, and places do not.

use super::parsed;
use crate::file::{parse, show};
use serde_json::Value;

const FULL: &str = include_str!("../../../../../examples/quadrille.yaml");

/// Changes every single value of the full example, one at a time. A change that the configuration page shows makes a
/// different model.
#[test]
fn every_leaf_makes_another_model() {
    let document = show(&parsed(FULL));
    let original = parse(&document.to_string(), "q.yaml").expect("what is shown can be read");
    let mut leaves = Vec::new();
    find(&document, String::new(), &mut leaves);
    // Secrets are not shown.
    leaves.retain(|pointer| !pointer.starts_with("/tracing/headers/"));
    let mut changed = 0;
    for pointer in &leaves {
        for other in others(document.pointer(pointer).expect("a leaf")) {
            let mut document = document.clone();
            *document.pointer_mut(pointer).expect("a leaf") = other;
            let Ok(model) = parse(&document.to_string(), "q.yaml") else { continue };
            let same = show(&model) == show(&original);
            assert_eq!(model == original, same, "{pointer}");
            changed += usize::from(!same);
        }
    }
    assert!(changed > leaves.len() / 2, "{changed} changes to {} leaves are good", leaves.len());
}

#[test]
fn a_setting_that_has_moved_has_not_changed() {
    assert_eq!(parsed(FULL), parsed(&format!("# A line more.\n{FULL}")));
}

fn find(value: &Value, pointer: String, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| find(item, format!("{pointer}/{index}"), leaves));
        }
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            find(value, format!("{pointer}/{key}"), leaves);
        }),
        _ => leaves.push(pointer),
    }
}

/// Other values of the same kind; not all need be good.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => vec![(number.as_u64().unwrap_or(1) + 1).into()],
        Value::String(text) => {
            let words =
                ["on", "off", "http1", "random", "tcp", "X25519", "1.3", "scalar", "v1", "3s", "memory"];
            words.iter().map(|&word| word.into()).chain([format!("{text}1").into()]).collect()
        }
        _ => Vec::new(),
    }
}
