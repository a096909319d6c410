//! `x-envoy-*` and `x-forwarded-client-cert` of requests and answers, as Envoy has them.

use super::Network;

/// Whose `x-envoy-*` are taken, and whether servers and clients are told further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EnvoyHeaders {
    /// Clients are connected directly: one that names nobody in `x-forwarded-for` is where it comes from, and others are
    /// external. Otherwise the one address that is named there counts.
    pub edge: bool,
    /// So many trusted proxies stand before the gateway: at the edge, the client is who the first of them has seen.
    pub trusted_hops: u32,
    /// Clients in these networks are internal: they may say how their requests are forwarded.
    pub internal: Vec<Network>,
    /// No further ones are told, but for attempts.
    pub suppress: bool,
}

/// Who is told how often a request was sent, in `x-envoy-attempt-count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttemptCounts {
    /// Servers.
    pub in_requests: bool,
    /// Clients.
    pub in_responses: bool,
}

/// What becomes of `x-forwarded-client-cert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedCertificate {
    /// What clients say is removed.
    #[default]
    Remove,
    /// What clients with a certificate say goes on.
    Keep,
    /// What is known of a client's certificate is added to what it says. Clients without one say nothing.
    Append(CertificateDetails),
    /// What is known of a client's certificate takes the place of what it says.
    Set(CertificateDetails),
    /// What clients say goes on, whoever they are.
    KeepAlways,
}

/// What servers are told of a client's certificate, besides its hash and the names of the gateway's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CertificateDetails {
    /// The certificate itself, in PEM.
    pub certificate: bool,
    /// All that the client has sent, in PEM.
    pub chain: bool,
    /// Its subject, as RFC 2253 writes it.
    pub subject: bool,
    /// The URIs of its alternative names.
    pub uris: bool,
    /// The DNS names among them.
    pub dns: bool,
}
