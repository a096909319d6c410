//! Ingress, networking.k8s.io/v1.

use super::{
    fields::{items, text},
    meta::Meta,
};
use quadrille_config::yaml::Node;

/// An Ingress.
#[derive(Clone, Debug)]
pub(crate) struct Ingress {
    pub(crate) meta: Meta,
    pub(crate) class: Option<String>,
    pub(crate) default_backend: Option<Backend>,
    pub(crate) tls: Vec<Tls>,
    pub(crate) rules: Vec<Rule>,
}

/// Hosts with the Secret of their certificate.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) hosts: Vec<String>,
    /// Empty for the default certificate.
    pub(crate) secret: String,
}

/// Paths of a host.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The host in lower case; empty for every host.
    pub(crate) host: String,
    pub(crate) paths: Vec<Path>,
}

/// A path with its backend.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) path: String,
    pub(crate) kind: PathType,
    pub(crate) backend: Backend,
}

/// Type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathType {
    Exact,
    /// Whole segments.
    Prefix,
    ImplementationSpecific,
}

/// A Service with one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) service: String,
    /// The number or the name; empty for the first port.
    pub(crate) port: String,
}

impl Ingress {
    /// Reads an Ingress.
    ///
    /// # Errors
    /// With the reason for which API servers reject the object.
    pub(super) fn read(node: &Node, meta: Meta) -> Result<Self, (Meta, String)> {
        let Some(spec) = node.get("spec") else { return Err((meta, "`spec` is missing".to_owned())) };
        let mut rules = Vec::new();
        for rule in items(spec, "rules") {
            match Rule::read(rule) {
                Ok(rule) => rules.push(rule),
                Err(problem) => return Err((meta, problem)),
            }
        }
        let default_backend = match spec.get("defaultBackend").map(Backend::read).transpose() {
            Ok(backend) => backend,
            Err(problem) => return Err((meta, format!("spec.defaultBackend: {problem}"))),
        };
        let class = Some(text(spec, "ingressClassName")).filter(|class| !class.is_empty());
        let tls = items(spec, "tls").iter().map(Tls::read).collect();
        Ok(Self { meta, class, default_backend, tls, rules })
    }
}

impl Tls {
    fn read(node: &Node) -> Self {
        let hosts = items(node, "hosts").iter().filter_map(Node::text);
        Self { hosts: hosts.map(str::to_ascii_lowercase).collect(), secret: text(node, "secretName") }
    }
}

impl Rule {
    fn read(node: &Node) -> Result<Self, String> {
        let host = text(node, "host").to_ascii_lowercase();
        let paths = node.get("http").map(|http| items(http, "paths")).unwrap_or_default();
        let paths: Result<Vec<_>, _> = paths.iter().map(Path::read).collect();
        Ok(Self { paths: paths.map_err(|problem| format!("host `{host}`: {problem}"))?, host })
    }
}

impl Path {
    fn read(node: &Node) -> Result<Self, String> {
        let path = text(node, "path");
        let kind = match text(node, "pathType").as_str() {
            "Exact" => PathType::Exact,
            "Prefix" => PathType::Prefix,
            "ImplementationSpecific" => PathType::ImplementationSpecific,
            other => {
                return Err(format!(
                    "path `{path}`: pathType `{other}` is not Exact, Prefix or ImplementationSpecific"
                ));
            }
        };
        let backend = node.get("backend").ok_or_else(|| format!("path `{path}`: `backend` is missing"))?;
        let backend = Backend::read(backend).map_err(|problem| format!("path `{path}`: {problem}"))?;
        let path = if path.is_empty() { "/".to_owned() } else { path };
        if !path.starts_with('/') && kind != PathType::ImplementationSpecific {
            return Err(format!("path `{path}` does not begin with `/`"));
        }
        Ok(Self { path, kind, backend })
    }
}

impl Backend {
    fn read(node: &Node) -> Result<Self, String> {
        let Some(service) = node.get("service") else {
            return Err("the backend is not a Service; other resources are not supported".to_owned());
        };
        let port = service.get("port");
        let port = port.map(|port| match text(port, "number") {
            number if number.is_empty() => text(port, "name"),
            number => number,
        });
        let (service, port) = (text(service, "name"), port.unwrap_or_default());
        if service.is_empty() {
            return Err("the backend's Service has no name".to_owned());
        }
        Ok(Self { service, port })
    }
}
