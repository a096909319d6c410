//! `x-envoy-*` and `x-forwarded-client-cert` headers of requests and responses, as in Envoy.

use super::Network;

/// Settings of `x-envoy-*` headers: the clients from which they are accepted, and the headers that are added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvoyHeaders {
    /// Whether clients connect directly: without `x-forwarded-for`, the client's address is that of the connection,
    /// and other clients are external. Otherwise the single address in the header counts.
    pub edge: bool,
    /// Number of trusted proxies in front of the gateway: at the edge, the client is the peer of the first of them.
    pub trusted_hops: u32,
    /// Clients in these networks are internal: they may control how their requests are forwarded.
    pub internal: Vec<Network>,
    /// Whether no `x-envoy-*` headers are added, except attempt counts.
    pub suppress: bool,
}

/// Messages that carry `x-envoy-attempt-count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttemptCounts {
    /// Requests to servers.
    pub in_requests: bool,
    /// Responses to clients.
    pub in_responses: bool,
}

/// The handling of `x-forwarded-client-cert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedCertificate {
    /// A value from the client is removed.
    #[default]
    Remove,
    /// A value from a client with a certificate is forwarded.
    Keep,
    /// Details of the client's certificate are appended to its value. A value from a client without a certificate is
    /// removed.
    Append(CertificateDetails),
    /// Details of the client's certificate replace its value.
    Set(CertificateDetails),
    /// A value from any client is forwarded.
    KeepAlways,
}

/// Details of a client's certificate that are sent to servers, in addition to its hash and the names of the gateway's
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CertificateDetails {
    /// The certificate itself, in PEM.
    pub certificate: bool,
    /// The whole chain that the client has sent, in PEM.
    pub chain: bool,
    /// The subject, in the format of RFC 2253.
    pub subject: bool,
    /// The URIs of its alternative names.
    pub uris: bool,
    /// The DNS names among them.
    pub dns: bool,
}
