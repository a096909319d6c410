//! Messages of the transport protocol, written by hand: so few do not justify a generated copy of Envoy's whole API.
//! Numbers and names are those of `envoy/service/discovery/v3/discovery.proto`; fields that are not read are omitted.

use std::collections::HashMap;
use zeroize::Zeroize;

/// `google.protobuf.Any`. Wiped on drop, because it may hold a private key.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct Any {
    /// The type of `value`.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// A serialised message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl Drop for Any {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

impl std::fmt::Debug for Any {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Any({}, {} bytes)", self.type_url, self.value.len())
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// A gRPC status code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Message for developers.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// `envoy.config.core.v3.Locality`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Locality {
    /// Region, such as that of a cloud.
    #[prost(string, tag = "1")]
    pub region: String,
    /// Zone within the region.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// Sub-zone within the zone.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// `envoy.config.core.v3.Node`: identity of the client.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    /// Id, unique in its cluster.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Group of gateways to which the node belongs.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// Metadata for the control plane.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<prost_reflect::prost_types::Struct>,
    /// Location of the node.
    #[prost(message, optional, tag = "4")]
    pub locality: Option<Locality>,
    /// Name of the program.
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// Version of the program.
    #[prost(string, tag = "7")]
    pub user_agent_version: String,
    /// Optional features that the client supports.
    #[prost(string, repeated, tag = "10")]
    pub client_features: Vec<String>,
}

/// A request in the state-of-the-world variant: a subscription, an ACK or a NACK.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DiscoveryRequest {
    /// Version that was accepted last.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// Node, only in the first request of a stream.
    #[prost(message, optional, tag = "2")]
    pub node: Option<Node>,
    /// All subscribed names; empty for a wildcard subscription.
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce of the response that is acknowledged or rejected.
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    /// Reason for a NACK.
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<Status>,
}

/// A response in the state-of-the-world variant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DiscoveryResponse {
    /// Version of all these resources.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// Resources, all of one type.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce for the ACK or NACK.
    #[prost(string, tag = "5")]
    pub nonce: String,
}

/// A request in the delta variant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaDiscoveryRequest {
    /// Node, only in the first request of a stream.
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    /// Type URL of the resources.
    #[prost(string, tag = "2")]
    pub type_url: String,
    /// Names to subscribe to; empty in the first request for a wildcard subscription.
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    /// Names to unsubscribe from.
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// Versions known from earlier streams, only in the first request of a stream.
    #[prost(map = "string, string", tag = "5")]
    pub initial_resource_versions: HashMap<String, String>,
    /// Nonce of the response that is acknowledged or rejected.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Reason for a NACK.
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<Status>,
}

/// A response in the delta variant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaDiscoveryResponse {
    /// Version for debugging.
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// New or changed resources.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    /// Type URL of the resources.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// Nonce for the ACK or NACK.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Names of removed resources.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
}

/// A resource with its name and version. The state-of-the-world variant may wrap it in an [`Any`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Version of this resource.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The resource; absent in a heartbeat, which extends its TTL.
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    /// Name of the resource.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// The type URL of a wrapped [`Resource`].
pub(crate) const WRAPPED: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
