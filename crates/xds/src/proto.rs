//! The messages of the transport protocol, by hand: these few do not pay for a generated copy of Envoy's whole API.
//! Numbers and names are those of `envoy/service/discovery/v3/discovery.proto`; fields that are not read are left out.

use std::collections::HashMap;
use zeroize::Zeroize;

/// `google.protobuf.Any`. It is wiped when it is dropped, for it may hold a private key.
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
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// `envoy.config.core.v3.Locality`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Locality {
    /// For instance a cloud's region.
    #[prost(string, tag = "1")]
    pub region: String,
    /// Within the region.
    #[prost(string, tag = "2")]
    pub zone: String,
    /// Within the zone.
    #[prost(string, tag = "3")]
    pub sub_zone: String,
}

/// `envoy.config.core.v3.Node`: who asks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    /// Unique in its cluster.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The group of gateways that it belongs to.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// Whatever the control plane wants to know.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<prost_reflect::prost_types::Struct>,
    /// Where it runs.
    #[prost(message, optional, tag = "4")]
    pub locality: Option<Locality>,
    /// The program.
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// The program's version.
    #[prost(string, tag = "7")]
    pub user_agent_version: String,
    /// What it can do beyond the least.
    #[prost(string, repeated, tag = "10")]
    pub client_features: Vec<String>,
}

/// A request in the state-of-the-world dialect: a subscription, an ACK or a NACK.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DiscoveryRequest {
    /// The last version that was accepted.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// In the first request of a stream.
    #[prost(message, optional, tag = "2")]
    pub node: Option<Node>,
    /// All names that are wanted; none for everything.
    #[prost(string, repeated, tag = "3")]
    pub resource_names: Vec<String>,
    /// Of what.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// The response that is answered.
    #[prost(string, tag = "5")]
    pub response_nonce: String,
    /// Why that response was refused.
    #[prost(message, optional, tag = "6")]
    pub error_detail: Option<Status>,
}

/// A response in the state-of-the-world dialect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DiscoveryResponse {
    /// The version of all these resources.
    #[prost(string, tag = "1")]
    pub version_info: String,
    /// Of one type.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Any>,
    /// Their type.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// To be named in the answer.
    #[prost(string, tag = "5")]
    pub nonce: String,
}

/// A request in the delta dialect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaDiscoveryRequest {
    /// In the first request of a stream.
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    /// Of what.
    #[prost(string, tag = "2")]
    pub type_url: String,
    /// Names that are wanted from now on; none in the first request for everything.
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    /// Names that are no longer wanted.
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// In the first request of a stream: what is known from earlier ones.
    #[prost(map = "string, string", tag = "5")]
    pub initial_resource_versions: HashMap<String, String>,
    /// The response that is answered.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Why that response was refused.
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<Status>,
}

/// A response in the delta dialect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeltaDiscoveryResponse {
    /// For people.
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    /// New or changed.
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Resource>,
    /// Their type.
    #[prost(string, tag = "4")]
    pub type_url: String,
    /// To be named in the answer.
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Names that there are no longer.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
}

/// A resource with its name and version. In the state-of-the-world dialect it may stand inside an [`Any`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Of this resource alone.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Absent in a heartbeat, which says that the resource still lives.
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    /// What it is called.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// The type URL of a wrapped [`Resource`].
pub(crate) const WRAPPED: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
