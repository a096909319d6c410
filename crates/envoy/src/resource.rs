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
use quadrille_config::{Allowance, Diagnostic, Diagnostics, Reader, Warnings, model::Origin, yaml::Node};
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
    /// Name by which it is referenced.
    pub name: String,
    /// The resource.
    pub resource: Resource,
    /// Warnings about it.
    pub warnings: Warnings,
    /// Mistakes of routes and virtual hosts that are closed, while the rest of the resource is served.
    pub closed: Vec<Diagnostic>,
    /// The resource as written, without secrets, for `/config_dump`.
    pub dump: Arc<serde_json::Value>,
}

impl Resource {
    /// Returns the resource type.
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

/// Reads a resource. `origin` replaces the file name in errors and warnings.
///
/// # Errors
/// Every mistake in it, with the path of the field.
pub fn read(kind: ResourceType, node: &Node, origin: Origin) -> Result<Read, Diagnostics> {
    read_at(kind, node, origin, "")
}

/// Like [`read`], for a resource sent by a control plane: it may name only files below these directories and no
/// environment variables, and its cost is limited to that allowed for its response. Routes that cannot be served are
/// closed, and the others are served.
///
/// # Errors
/// See [`read`].
pub fn read_remote(
    kind: ResourceType,
    node: &Node,
    origin: Origin,
    directories: &Arc<[PathBuf]>,
    allowance: &Rc<Allowance>,
) -> Result<Read, Diagnostics> {
    finish(kind, node, reader(origin).of_stranger(Arc::clone(directories), Rc::clone(allowance)), "")
}

/// Like [`read`], for a resource at `path` in a larger document.
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
    let closed = reader.left_out();
    match reader.finish(found) {
        Ok(((name, resource), warnings)) => {
            Ok(Read { name, resource, warnings, closed, dump: Arc::new(redacted(node)) })
        }
        Err(errors) => Err(Diagnostics::new([Vec::from(errors), closed].concat())),
    }
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
