//! The types of resources.

use crate::schema;

/// A resource type. The order is that of requests: referenced types come first, so that connections are never sent to
/// resources that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceType {
    /// `Cluster` (CDS).
    Cluster,
    /// `ClusterLoadAssignment` (EDS).
    Endpoints,
    /// `Listener` (LDS).
    Listener,
    /// `RouteConfiguration` (RDS).
    Routes,
    /// `Secret` (SDS).
    Secret,
}

impl ResourceType {
    /// All types in order.
    pub const ALL: [Self; 5] = [Self::Cluster, Self::Endpoints, Self::Listener, Self::Routes, Self::Secret];

    /// Returns the full name of the message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Cluster => schema::CLUSTER.name,
            Self::Endpoints => schema::LOAD_ASSIGNMENT.name,
            Self::Listener => schema::LISTENER.name,
            Self::Routes => schema::ROUTE_CONFIGURATION.name,
            Self::Secret => schema::SECRET.name,
        }
    }

    /// Returns the type URL used in requests.
    pub fn type_url(self) -> String {
        format!("type.googleapis.com/{}", self.message())
    }

    /// Returns the type with this URL, ignoring the prefix of its name.
    pub fn from_type_url(url: &str) -> Option<Self> {
        let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
        Self::ALL.into_iter().find(|kind| kind.message() == name)
    }

    /// Returns the field that contains the resource's name.
    pub const fn name_field(self) -> &'static str {
        match self {
            Self::Endpoints => "cluster_name",
            _ => "name",
        }
    }

    /// Returns the service's name in logs and statistics.
    pub const fn service(self) -> &'static str {
        match self {
            Self::Cluster => "cds",
            Self::Endpoints => "eds",
            Self::Listener => "lds",
            Self::Routes => "rds",
            Self::Secret => "sds",
        }
    }

    /// Returns whether a server's list of this type is complete, so that omitted resources are removed. Other types
    /// are requested by name.
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }
}

impl std::fmt::Display for ResourceType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cluster => "cluster",
            Self::Endpoints => "endpoints",
            Self::Listener => "listener",
            Self::Routes => "route configuration",
            Self::Secret => "secret",
        })
    }
}
