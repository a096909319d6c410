//! Kubernetes objects, with the fields that are read and the lines of their annotations.
//!
//! Documents in YAML or JSON, several in a text, and lists (`kind: List`, `IngressList`) are read. Objects of other kinds
//! are counted and left out.

mod cluster;
mod fields;
mod ingress;
mod live;
mod meta;

pub(crate) use cluster::{ConfigMap, EndpointSlice, IngressClass, Secret, Service};
pub(crate) use ingress::{Backend, Ingress, PathType};
pub(crate) use meta::Meta;

use fields::{line, text};
use quadrille_config::yaml::{self, Limits, Node, Value};
use std::sync::Arc;

/// Objects of one or more texts.
#[derive(Debug, Default)]
pub struct Objects {
    pub(crate) ingresses: Vec<Ingress>,
    pub(crate) classes: Vec<IngressClass>,
    pub(crate) services: Vec<Service>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) config_maps: Vec<ConfigMap>,
    pub(crate) endpoint_slices: Vec<EndpointSlice>,
    /// Objects that cannot be read, with their place.
    pub(crate) unreadable: Vec<(Meta, String)>,
    /// Kinds of other objects.
    pub(crate) others: Vec<String>,
    /// Whether these are all objects of a cluster, so that others do not exist.
    pub(crate) is_complete: bool,
}

/// A text that is not YAML or JSON, with its file and line.
#[derive(Debug)]
pub struct SyntaxError(String);

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds the objects of a text to `objects`.
///
/// # Errors
/// If it is not YAML or JSON, or too large.
pub fn read(text: &str, file: &str, objects: &mut Objects) -> Result<(), SyntaxError> {
    let documents = yaml::documents(text, Limits::BY_PROGRAM)
        .map_err(|error| SyntaxError(format!("{file}:{}: {}", line(error.position), error.problem)))?;
    let file: Arc<str> = file.into();
    documents.iter().for_each(|document| objects.add(document, &file));
    Ok(())
}

impl Objects {
    fn add(&mut self, node: &Node, file: &Arc<str>) {
        if let Some(Value::Sequence(items)) = node.get("items").map(|items| &items.value) {
            items.iter().for_each(|item| self.add(item, file));
            return;
        }
        let kind = text(node, "kind");
        let meta = Meta::read(node, file, &kind);
        match (kind.as_str(), text(node, "apiVersion").as_str()) {
            ("Ingress", "networking.k8s.io/v1") => match Ingress::read(node, meta) {
                Ok(ingress) => self.ingresses.push(ingress),
                Err(unreadable) => self.unreadable.push(unreadable),
            },
            ("Ingress", version) => {
                let problem = format!(
                    "apiVersion {version} is not networking.k8s.io/v1: no server has it since Kubernetes 1.22; convert it with \
                     `kubectl convert`"
                );
                self.unreadable.push((meta, problem));
            }
            ("IngressClass", _) => self.classes.push(IngressClass::read(node, meta)),
            ("Service", "v1") => self.services.push(Service::read(node, meta)),
            ("Secret", "v1") => self.secrets.push(Secret::read(node, meta)),
            ("ConfigMap", "v1") => self.config_maps.push(ConfigMap::read(node, meta)),
            ("EndpointSlice", _) => self.endpoint_slices.push(EndpointSlice::read(node, meta)),
            ("", _) => self.unreadable.push((meta, "not a Kubernetes object: `kind` is missing".to_owned())),
            (other, _) => self.others.push(other.to_owned()),
        }
    }

    /// Returns what to say of an object that is not among these.
    pub(crate) fn missing(&self) -> &'static str {
        if self.is_complete { "does not exist: create it" } else { "is not in the input: add it" }
    }

    pub(crate) fn secret(&self, namespace: &str, name: &str) -> Option<&Secret> {
        self.secrets.iter().find(|secret| secret.meta.is(namespace, name))
    }

    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.meta.is(namespace, name))
    }

    pub(crate) fn config_map(&self, namespace: &str, name: &str) -> Option<&ConfigMap> {
        self.config_maps.iter().find(|map| map.meta.is(namespace, name))
    }
}
