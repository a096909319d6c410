//! One resource, read and validated by itself.

use crate::{
    cluster::{Cluster, cluster},
    endpoints::{Endpoints, assigned_endpoints},
    listener::{Listener, listener},
    reader::{Field, reader},
    redaction::redacted,
    resource_type::ResourceType,
    route::{RouteConfiguration, route_configuration},
    tls::{Secret, secret},
};
use quadrille_config::{Allowance, Diagnostics, Reader, Warnings, model::Origin, yaml::Node};
use std::{path::PathBuf, rc::Rc, sync::Arc};

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

/// Reads a resource. `origin` stands where a file's name would, in errors and warnings.
///
/// # Errors
/// Everything that is wrong with it, with the path of the field.
pub fn read(kind: ResourceType, node: &Node, origin: Origin) -> Result<Read, Diagnostics> {
    read_at(kind, node, origin, "")
}

/// As [`read`], of a resource that a control plane has sent: it may name files below these directories only, and no
/// environment variables, and costs no more than its response is allowed.
///
/// # Errors
/// As [`read`].
pub fn read_remote(
    kind: ResourceType,
    node: &Node,
    origin: Origin,
    directories: &Arc<[PathBuf]>,
    allowance: &Rc<Allowance>,
) -> Result<Read, Diagnostics> {
    finish(kind, node, reader(origin).of_stranger(Arc::clone(directories), Rc::clone(allowance)), "")
}

/// As [`read`], of a resource that stands at `path` in a larger document.
pub(crate) fn read_at(
    kind: ResourceType,
    node: &Node,
    origin: Origin,
    path: &str,
) -> Result<Read, Diagnostics> {
    finish(kind, node, reader(origin), path)
}

fn finish(kind: ResourceType, node: &Node, reader: Reader, path: &str) -> Result<Read, Diagnostics> {
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
            cluster(field).map(|(name, found)| (name, Resource::Cluster(Arc::new(found))))
        }
        ResourceType::Endpoints => {
            assigned_endpoints(field).map(|(name, found)| (name, Resource::Endpoints(Arc::new(found))))
        }
        ResourceType::Secret => secret(field).map(|(name, found)| (name, Resource::Secret(Arc::new(found)))),
    }
}
