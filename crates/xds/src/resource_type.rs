//! Resource types on the wire.

use quadrille_envoy::ResourceType;

/// Returns the resource type of this exact type URL.
pub(crate) fn from_type_url(url: &str) -> Option<ResourceType> {
    ResourceType::from_type_url(url).filter(|kind| kind.type_url() == url)
}

/// Returns the gRPC methods of the type's own service: state of the world, and delta.
pub(crate) fn methods(kind: ResourceType) -> [&'static str; 2] {
    match kind {
        ResourceType::Cluster => [
            "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
            "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
        ],
        ResourceType::Endpoints => [
            "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
            "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
        ],
        ResourceType::Listener => [
            "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
            "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
        ],
        ResourceType::Routes => [
            "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
            "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
        ],
        ResourceType::Secret => [
            "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
            "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
        ],
    }
}

/// Methods of the aggregated service: state of the world, and delta.
pub(crate) const AGGREGATED: [&str; 2] = [
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
];

/// Prefix of a message's name in a type URL.
pub(crate) const TYPE_PREFIX: &str = "type.googleapis.com/";
