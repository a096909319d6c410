//! The HTTP connection manager's settings for `x-envoy-*` and `x-forwarded-client-cert`.

use crate::{
    common::cidr_range,
    reader::{Message, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::model::{CertificateDetails, EnvoyHeaders, ForwardedCertificate};

/// Reads which clients' `x-envoy-*` are accepted. `suppress` is the router's setting.
pub(crate) fn envoy_headers(message: &Message<'_>, suppress: bool) -> Option<EnvoyHeaders> {
    let mut internal = Vec::new();
    if let Some(config) = message.get("internal_address_config") {
        let config = config.message(&schema::INTERNAL_ADDRESS_CONFIG)?;
        internal = config.list("cidr_ranges").iter().map(cidr_range).collect::<Option<Vec<_>>>()?;
    }
    let trusted_hops = message.number("xff_num_trusted_hops").unwrap_or_default();
    Some(EnvoyHeaders { edge: message.flag("use_remote_address"), trusted_hops, internal, suppress })
}

/// Reads which client certificate details are forwarded to upstreams.
pub(crate) fn forwarded_certificate(message: &Message<'_>) -> Option<ForwardedCertificate> {
    type Make = fn(CertificateDetails) -> ForwardedCertificate;
    const KINDS: &[(&str, u32, Make)] = &[
        ("SANITIZE", 0, |_| ForwardedCertificate::Remove),
        ("FORWARD_ONLY", 1, |_| ForwardedCertificate::Keep),
        ("APPEND_FORWARD", 2, ForwardedCertificate::Append),
        ("SANITIZE_SET", 3, ForwardedCertificate::Set),
        ("ALWAYS_FORWARD_ONLY", 4, |_| ForwardedCertificate::KeepAlways),
    ];
    let mut details = CertificateDetails::default();
    if let Some(told) = message.get("set_current_client_cert_details") {
        let told = told.message(&schema::CLIENT_CERTIFICATE_DETAILS)?;
        details = CertificateDetails {
            certificate: told.flag("cert"),
            chain: told.flag("chain"),
            subject: told.flag("subject"),
            uris: told.flag("uri"),
            dns: told.flag("dns"),
        };
    }
    let make = match message.get("forward_client_cert_details") {
        Some(kind) => kind.parse(enumeration(KINDS))?,
        None => |_| ForwardedCertificate::Remove,
    };
    Some(make(details))
}
