//! The types of resources.

use crate::schema;

/// A type of resource. The order is that in which they are asked for: what others refer to comes first, so that a
/// connection is never sent to what is not there yet.
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
    /// In their order.
    pub const ALL: [Self; 5] = [Self::Cluster, Self::Endpoints, Self::Listener, Self::Routes, Self::Secret];

    /// The full name of the message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Cluster => schema::CLUSTER.name,
            Self::Endpoints => schema::LOAD_ASSIGNMENT.name,
            Self::Listener => schema::LISTENER.name,
            Self::Routes => schema::ROUTE_CONFIGURATION.name,
            Self::Secret => schema::SECRET.name,
        }
    }

    /// As it is written in requests.
    pub fn type_url(self) -> String {
        format!("type.googleapis.com/{}", self.message())
    }

    /// The type with this URL, whatever stands before its name.
    pub fn from_type_url(url: &str) -> Option<Self> {
        let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
        Self::ALL.into_iter().find(|kind| kind.message() == name)
    }

    /// The field that holds a resource's name.
    pub const fn name_field(self) -> &'static str {
        match self {
            Self::Endpoints => "cluster_name",
            _ => "name",
        }
    }

    /// As people and statistics name the service.
    pub const fn service(self) -> &'static str {
        match self {
            Self::Cluster => "cds",
            Self::Endpoints => "eds",
            Self::Listener => "lds",
            Self::Routes => "rds",
            Self::Secret => "sds",
        }
    }

    /// Whether a server's list of them is complete, so that what it leaves out is gone. The others are asked for by
    /// name.
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
