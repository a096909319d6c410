//! Objects that Ingress objects refer to.

use super::{
    fields::{entries, items, line, text},
    meta::Meta,
};
use base64ct::{Base64, Encoding};
use quadrille_config::yaml::{Node, Value};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// An IngressClass.
#[derive(Clone, Debug)]
pub(crate) struct IngressClass {
    pub(crate) meta: Meta,
    pub(crate) controller: String,
}

/// A Service.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) meta: Meta,
    /// The host of a Service of type ExternalName.
    pub(crate) external_name: Option<String>,
    pub(crate) is_headless: bool,
    pub(crate) ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) number: u16,
    /// The port of the pods, if it is a number: that of headless Services.
    pub(crate) target: Option<u16>,
}

/// A Secret.
#[derive(Clone)]
pub(crate) struct Secret {
    pub(crate) meta: Meta,
    /// Decoded values; those that are not text or not base64 are errors.
    data: Vec<(String, Result<Zeroizing<String>, String>)>,
    /// Whether the chain and the key can be used, once that was checked.
    usable: OnceLock<Result<(), String>>,
}

/// A ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct ConfigMap {
    pub(crate) meta: Meta,
    pub(crate) data: Vec<(String, String)>,
    /// The line of each key of `data`.
    pub(crate) lines: Vec<usize>,
}

/// An EndpointSlice.
#[derive(Clone, Debug)]
pub(crate) struct EndpointSlice {
    pub(crate) meta: Meta,
    pub(crate) service: String,
    /// Ports by name.
    pub(crate) ports: Vec<(String, u16)>,
    /// Addresses of endpoints that are ready.
    pub(crate) addresses: Vec<String>,
    /// Addresses of endpoints that terminate, and still serve.
    pub(crate) terminating: Vec<String>,
}

impl IngressClass {
    pub(super) fn read(node: &Node, meta: Meta) -> Self {
        let controller = node.get("spec").map(|spec| text(spec, "controller")).unwrap_or_default();
        Self { meta, controller }
    }
}

impl Service {
    pub(super) fn read(node: &Node, meta: Meta) -> Self {
        let mut service = Self { meta, external_name: None, is_headless: false, ports: Vec::new() };
        let Some(spec) = node.get("spec") else { return service };
        if text(spec, "type") == "ExternalName" {
            service.external_name = Some(text(spec, "externalName"));
        }
        service.is_headless = text(spec, "clusterIP") == "None";
        for port in items(spec, "ports") {
            let Ok(number) = text(port, "port").parse() else { continue };
            let target = text(port, "targetPort").parse().ok();
            service.ports.push(ServicePort { name: text(port, "name"), number, target });
        }
        service
    }

    /// Returns the port with this number or name, or the first one if it is empty.
    pub(crate) fn port(&self, port: &str) -> Option<&ServicePort> {
        match port {
            "" => self.ports.first(),
            _ => self.ports.iter().find(|one| one.name == port || one.number.to_string() == port),
        }
    }
}

impl Secret {
    pub(super) fn read(node: &Node, meta: Meta) -> Self {
        let mut data = Vec::new();
        for (key, value) in entries(node, "data") {
            let value = Zeroizing::new(value.split_whitespace().collect::<String>());
            let decoded = Base64::decode_vec(&value).map_err(|_| format!("`{key}` is not base64"));
            let text = decoded.and_then(|bytes| text_of(&key, bytes));
            data.push((key, text));
        }
        data.extend(
            entries(node, "stringData").into_iter().map(|(key, value)| (key, Ok(Zeroizing::new(value)))),
        );
        Self { meta, data, usable: OnceLock::new() }
    }

    /// Makes a Secret of decoded values.
    pub(super) fn of_values(meta: Meta, values: Vec<(String, Zeroizing<Vec<u8>>)>) -> Self {
        let text = |(key, mut value): (String, Zeroizing<Vec<u8>>)| {
            let text = text_of(&key, std::mem::take(&mut *value));
            (key, text)
        };
        Self { meta, data: values.into_iter().map(text).collect(), usable: OnceLock::new() }
    }

    /// Checks the chain and the key, once.
    ///
    /// # Errors
    /// With the reason for which they cannot be used.
    pub(crate) fn usable(&self, check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        self.usable.get_or_init(check).clone()
    }

    /// Returns the text under this key.
    ///
    /// # Errors
    /// If it is missing, or not text.
    pub(crate) fn text(&self, key: &str) -> Result<&str, String> {
        match self.data.iter().find(|(known, _)| known == key) {
            Some((_, Ok(text))) => Ok(text),
            Some((_, Err(problem))) => Err(problem.clone()),
            None => Err(format!("`{key}` is missing")),
        }
    }

    /// Returns all keys with their texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &Result<Zeroizing<String>, String>)> {
        self.data.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl ConfigMap {
    pub(super) fn read(node: &Node, meta: Meta) -> Self {
        let mut map = Self { meta, data: Vec::new(), lines: Vec::new() };
        if let Some(Value::Mapping(entries)) = node.get("data").map(|data| &data.value) {
            for entry in entries {
                let value = entry.value.text().unwrap_or_default().to_owned();
                map.data.push((entry.key.clone(), value));
                map.lines.push(line(entry.position));
            }
        }
        map
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.data.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl EndpointSlice {
    pub(super) fn read(node: &Node, meta: Meta) -> Self {
        let labels = node.get("metadata").map(|metadata| entries(metadata, "labels")).unwrap_or_default();
        let service = labels.into_iter().find(|(key, _)| key == "kubernetes.io/service-name");
        let ports = items(node, "ports").iter();
        let ports = ports.filter_map(|port| Some((text(port, "name"), text(port, "port").parse().ok()?)));
        let is_ready = |endpoint: &&Node| {
            endpoint.get("conditions").is_none_or(|conditions| text(conditions, "ready") != "false")
        };
        let is_leaving = |endpoint: &&Node| {
            let is = |key: &str| endpoint.get("conditions").is_some_and(|one| text(one, key) == "true");
            is("serving") && is("terminating")
        };
        let endpoints = items(node, "endpoints");
        let addresses = |of: Vec<&Node>| -> Vec<String> {
            let addresses = of.into_iter().flat_map(|one| items(one, "addresses")).filter_map(Node::text);
            addresses.map(str::to_owned).collect()
        };
        Self {
            service: service.map(|(_, name)| name).unwrap_or_default(),
            ports: ports.collect(),
            addresses: addresses(endpoints.iter().filter(is_ready).collect()),
            terminating: addresses(endpoints.iter().filter(is_leaving).collect()),
            meta,
        }
    }
}

/// Returns the text of a value.
fn text_of(key: &str, bytes: Vec<u8>) -> Result<Zeroizing<String>, String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Zeroizing::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            Err(format!("`{key}` is not text"))
        }
    }
}
