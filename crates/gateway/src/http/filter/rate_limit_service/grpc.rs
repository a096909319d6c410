//! Request and response of `envoy.service.ratelimit.v3.RateLimitService`, limited to the fields in use.

use prost::Message;

/// The gRPC method that is called.
pub(super) const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitRequest {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<RateLimitDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitDescriptor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub(super) limit: Option<LimitOverride>,
    #[prost(message, optional, tag = "3")]
    pub(super) hits_addend: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Entry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LimitOverride {
    #[prost(uint32, tag = "1")]
    pub(super) requests_per_unit: u32,
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct UInt64Value {
    #[prost(uint64, tag = "1")]
    pub(super) value: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall_code: i32,
    #[prost(message, repeated, tag = "2")]
    pub(super) statuses: Vec<DescriptorStatus>,
    #[prost(message, repeated, tag = "3")]
    pub(super) response_headers_to_add: Vec<Header>,
    #[prost(message, repeated, tag = "4")]
    pub(super) request_headers_to_add: Vec<Header>,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) raw_body: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DescriptorStatus {
    #[prost(message, optional, tag = "2")]
    pub(super) current_limit: Option<CurrentLimit>,
    #[prost(uint32, tag = "3")]
    pub(super) limit_remaining: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) duration_until_reset: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CurrentLimit {
    #[prost(uint32, tag = "1")]
    pub(super) requests_per_unit: u32,
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
    #[prost(string, tag = "3")]
    pub(super) name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Duration {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    value: String,
    #[prost(bytes = "vec", tag = "3")]
    raw_value: Vec<u8>,
}

impl RateLimitResponse {
    /// Returns whether the request exceeds a limit.
    pub(super) fn is_over_limit(&self) -> bool {
        const OVER_LIMIT: i32 = 2;
        self.overall_code == OVER_LIMIT
    }
}

impl Header {
    pub(super) fn value(&self) -> &[u8] {
        if self.raw_value.is_empty() { self.value.as_bytes() } else { &self.raw_value }
    }
}
