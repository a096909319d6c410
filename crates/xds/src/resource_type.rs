//! The types of resources.

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
    pub const fn message(self) -> &'static str {
        match self {
            Self::Cluster => "envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "envoy.config.listener.v3.Listener",
            Self::Routes => "envoy.config.route.v3.RouteConfiguration",
            Self::Secret => "envoy.extensions.transport_sockets.tls.v3.Secret",
        }
    }

    /// As it is written in requests.
    pub fn type_url(self) -> String {
        format!("{TYPE_PREFIX}{}", self.message())
    }

    /// The kind with this type URL.
    pub fn from_type_url(url: &str) -> Option<Self> {
        let message = url.strip_prefix(TYPE_PREFIX)?;
        Self::ALL.into_iter().find(|kind| kind.message() == message)
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

    /// Whether a server's list of them is complete, so that what it leaves out is gone. The others are asked for by name.
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Cluster | Self::Listener)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The gRPC methods of the service that has this type alone: state of the world, and delta.
    pub(crate) const fn methods(self) -> [&'static str; 2] {
        match self {
            Self::Cluster => [
                "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
                "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
            ],
            Self::Endpoints => [
                "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
                "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
            ],
            Self::Listener => [
                "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
                "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
            ],
            Self::Routes => [
                "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
                "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
            ],
            Self::Secret => [
                "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
                "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
            ],
        }
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

/// The methods of the aggregated service: state of the world, and delta.
pub(crate) const AGGREGATED: [&str; 2] = [
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
];

/// What stands before a message's name in a type URL.
pub(crate) const TYPE_PREFIX: &str = "type.googleapis.com/";
