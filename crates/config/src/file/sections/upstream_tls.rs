//! TLS towards the servers.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::UpstreamTls,
    values,
    words::switch,
};

pub(super) const UPSTREAM_TLS: Section = Section {
    path: "upstreams.<name>.tls",
    about: "TLS towards the servers. `on` verifies their certificates against the system's CA bundle.",
    keys: &[
        Key {
            name: "server_name",
            value: "host",
            preset: Preset::Means("the host of the server's address"),
            about: "Sent as SNI, and the name that the certificate must carry.",
        },
        Key {
            name: "ca",
            value: "path, or PEM text",
            preset: Preset::Means("the system's CA bundle"),
            about: "The CA certificates in PEM that the servers' certificates must lead to.",
        },
        Key {
            name: "verify",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Check the servers' certificates. `off` means that anybody between can impersonate them.",
        },
    ],
};

/// The policy, unless TLS is switched off.
pub(super) fn tls(field: &Field<'_>) -> Option<UpstreamTls> {
    if field.is_scalar() {
        return field.parse(switch)?.then(UpstreamTls::default);
    }
    let keys = field.mapping(&UPSTREAM_TLS)?;
    let mut tls =
        UpstreamTls { server_name: keys.read("server_name", values::host), ..UpstreamTls::default() };
    keys.update("verify", &mut tls.verify, switch);
    if let Some(field) = keys.get("ca") {
        tls.ca = field.pem();
        tls.ca_place = Some(field.place());
        if !tls.verify {
            field.error("`verify: off` means that no CA is looked at; remove one of them");
        }
    }
    Some(tls)
}
