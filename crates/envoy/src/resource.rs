//! One resource, read and validated by itself.

use crate::{
    cluster::{Cluster, Endpoints, assigned_endpoints, cluster},
    listener::{Listener, listener},
    reader::{Field, Reader},
    redaction::redacted,
    route::{RouteConfiguration, route_configuration},
    schema,
    tls::{Secret, secret},
    warnings::Warnings,
};
use quadrille_config::{ConfigErrors, yaml::Node};
use std::sync::Arc;

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceType {
    /// LDS.
    Listener,
    /// RDS.
    Routes,
    /// CDS.
    Cluster,
    /// EDS.
    Endpoints,
    /// SDS.
    Secret,
}

/// A resource.
#[derive(Clone, Debug)]
pub enum Resource {
    /// LDS.
    Listener(Arc<Listener>),
    /// RDS.
    Routes(Arc<RouteConfiguration>),
    /// CDS.
    Cluster(Arc<Cluster>),
    /// EDS.
    Endpoints(Arc<Endpoints>),
    /// SDS.
    Secret(Arc<Secret>),
}

/// A resource that was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// By which others name it.
    pub name: String,
    /// The resource.
    pub resource: Resource,
    /// What is worth knowing about it.
    pub warnings: Warnings,
    /// As it was written, without secrets, for `/config_dump`.
    pub dump: Arc<serde_json::Value>,
}

impl Resource {
    /// Which kind it is.
    pub fn kind(&self) -> ResourceType {
        match self {
            Self::Listener(_) => ResourceType::Listener,
            Self::Routes(_) => ResourceType::Routes,
            Self::Cluster(_) => ResourceType::Cluster,
            Self::Endpoints(_) => ResourceType::Endpoints,
            Self::Secret(_) => ResourceType::Secret,
        }
    }
}

impl ResourceType {
    /// All of them, in the order in which they can be applied.
    pub const ALL: [Self; 5] = [Self::Secret, Self::Cluster, Self::Endpoints, Self::Routes, Self::Listener];

    /// The full name of its message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Listener => schema::LISTENER.name,
            Self::Routes => schema::ROUTE_CONFIGURATION.name,
            Self::Cluster => schema::CLUSTER.name,
            Self::Endpoints => schema::LOAD_ASSIGNMENT.name,
            Self::Secret => schema::SECRET.name,
        }
    }

    /// The URL by which it is asked for.
    pub fn type_url(self) -> String {
        format!("type.googleapis.com/{}", self.message())
    }

    /// The kind that has this URL.
    pub fn from_type_url(url: &str) -> Option<Self> {
        let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
        Self::ALL.into_iter().find(|kind| kind.message() == name)
    }
}

/// Reads a resource. `origin` stands where a file's name would, in errors and warnings.
///
/// # Errors
/// Everything that is wrong with it, with the path of the field.
pub fn read(kind: ResourceType, node: &Node, origin: &str) -> Result<Read, ConfigErrors> {
    read_at(kind, node, origin, "")
}

/// As [`read`], of a resource that stands at `path` in a larger document.
pub(crate) fn read_at(
    kind: ResourceType,
    node: &Node,
    origin: &str,
    path: &str,
) -> Result<Read, ConfigErrors> {
    let reader = Reader::new(origin);
    let found = resource(kind, &reader.root(node, path));
    let ((name, resource), warnings) = reader.finish(found)?;
    Ok(Read { name, resource, warnings, dump: Arc::new(redacted(node)) })
}

fn resource(kind: ResourceType, field: &Field<'_>) -> Option<(String, Resource)> {
    match kind {
        ResourceType::Listener => {
            listener(field).map(|(name, found)| (name, Resource::Listener(Arc::new(found))))
        }
        ResourceType::Routes => {
            route_configuration(field).map(|(name, found)| (name, Resource::Routes(Arc::new(found))))
        }
        ResourceType::Cluster => {
            let (name, found) = cluster(field)?;
            // Only the bootstrap names control planes.
            if let Some(beyond) = found.tls.as_ref().and_then(|tls| tls.beyond.as_ref()) {
                field.error(beyond.clone());
            }
            Some((name, Resource::Cluster(Arc::new(found))))
        }
        ResourceType::Endpoints => {
            assigned_endpoints(field).map(|(name, found)| (name, Resource::Endpoints(Arc::new(found))))
        }
        ResourceType::Secret => secret(field).map(|(name, found)| (name, Resource::Secret(Arc::new(found)))),
    }
}
