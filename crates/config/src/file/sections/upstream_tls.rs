//! TLS towards the servers.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::source,
    },
    model::UpstreamTls,
    values,
    words::switch,
};

pub(super) const UPSTREAM_TLS: Section<UpstreamTls> = Section {
    path: "upstreams.<name>.tls",
    about: "TLS towards the servers. `on` verifies their certificates against the system's CA bundle.",
    keys: &[
        Key {
            name: "server_name",
            value: "host",
            preset: Preset::Means("the host of the server's address"),
            about: "Sent as SNI, and the name that the certificate must carry.",
            needs_restart: false,
            read: |field, tls| tls.server_name = field.parse(values::host),
            show: |tls| tls.server_name.as_deref().into(),
        },
        Key {
            name: "ca",
            value: "path, or PEM text",
            preset: Preset::Means("the system's CA bundle"),
            about: "The CA certificates in PEM that the servers' certificates must lead to.",
            needs_restart: false,
            read: |field, tls| (tls.ca, tls.ca_place) = (field.pem(), Some(field.place())),
            show: |tls| tls.ca.as_ref().map(source).into(),
        },
        Key {
            name: "verify",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Check the servers' certificates. `off` means that anybody between can impersonate them.",
            needs_restart: false,
            read: |field, tls| field.set(&mut tls.verify, switch),
            show: |tls| tls.verify.into(),
        },
    ],
};

/// The policy, unless TLS is switched off.
pub(super) fn tls(field: &Field<'_>) -> Option<UpstreamTls> {
    if field.is_scalar() {
        return field.parse(switch)?.then(UpstreamTls::default);
    }
    let mut tls = UpstreamTls::default();
    UPSTREAM_TLS.read(field, &mut tls)?;
    if let (false, Some(ca)) = (tls.verify, field.entry("ca")) {
        ca.error(Problem::new("`verify: off` means that no CA is looked at", "remove one of them"));
    }
    Some(tls)
}
