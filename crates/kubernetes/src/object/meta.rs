//! Names and annotations of objects.

use super::fields::{line, text};
use quadrille_config::yaml::{Node, Value};
use quadrille_draft::ledger::Place;
use std::{fmt, sync::Arc};

/// Metadata of an object.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The time of creation in RFC 3339, which sorts as text; empty in manifests.
    pub(crate) created: String,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) place: Place,
}

/// An annotation.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether the value is a text: servers reject numbers and booleans.
    pub(crate) is_text: bool,
    pub(crate) line: usize,
}

impl Meta {
    /// Creates metadata with a name alone.
    pub(super) fn named(kind: &str, namespace: &str, name: &str, file: Arc<str>) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            created: String::new(),
            annotations: Vec::new(),
            place: Place { file, line: 0 },
        }
    }

    pub(super) fn read(node: &Node, file: &Arc<str>, kind: &str) -> Self {
        let begin = line(node.position);
        let mut meta = Self::named(kind, "", "", Arc::clone(file));
        meta.place.line = begin;
        let Some(metadata) = node.get("metadata") else { return meta };
        meta.name = text(metadata, "name");
        meta.namespace = text(metadata, "namespace");
        if meta.namespace.is_empty() && kind != "IngressClass" {
            "default".clone_into(&mut meta.namespace);
        }
        meta.created = text(metadata, "creationTimestamp");
        if let Some(Value::Mapping(entries)) = metadata.get("annotations").map(|node| &node.value) {
            for entry in entries {
                let value = entry.value.text().unwrap_or_default().to_owned();
                meta.annotations.push(Annotation {
                    name: entry.key.clone(),
                    is_text: !entry.value.plain || !is_other_type(&value),
                    value,
                    line: line(entry.position),
                });
            }
        }
        meta
    }

    /// Returns whether the object has this name.
    pub(crate) fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// Returns the value of an annotation by its whole name.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.iter().find(|one| one.name == name).map(|one| one.value.as_str())
    }

    /// Returns the order of precedence: the oldest object first, then by name.
    pub(crate) fn precedence(&self) -> (&str, &str, &str) {
        (&self.created, &self.namespace, &self.name)
    }
}

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.is_empty() {
            true => write!(f, "{} {}", self.kind, self.name),
            false => write!(f, "{} {}/{}", self.kind, self.namespace, self.name),
        }
    }
}

/// Returns whether YAML takes an unquoted word for a boolean or a number.
fn is_other_type(word: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off"].iter().any(|one| word.eq_ignore_ascii_case(one))
        || word.parse::<f64>().is_ok()
}
