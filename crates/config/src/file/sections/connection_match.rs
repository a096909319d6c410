//! Conditions on the connections that a listener handles.

use crate::{
    Field,
    enums::{name, word},
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::ChainMatch,
    values,
};
use serde_json::Value;

pub(super) const MATCH: Section<ChainMatch> = Section {
    path: "listeners[].match",
    about: "Selects connections by the first bytes from the client. The name is compared before the transport, and \
            the transport before the protocols; at each step the most specific value wins, as in Envoy's filter \
            chains.",
    keys: &[
        Key {
            name: "server_names",
            value: "list of hosts",
            preset: Preset::Means("any, or none"),
            about: "The client's SNI: `example.com`, or `*.example.com` for all names below it, at any \
                    depth.",
            needs_restart: false,
            read: |field, accepts| accepts.server_names = server_names(field),
            show: |accepts| texts(&accepts.server_names),
        },
        Key {
            name: "transport",
            value: "`tls` or `plain`",
            preset: Preset::Means("both"),
            about: "Whether the client begins with a TLS handshake.",
            needs_restart: false,
            read: |field, accepts| accepts.transport = field.parse(word),
            show: |accepts| accepts.transport.map(name).into(),
        },
        Key {
            name: "application_protocols",
            value: "list of protocols",
            preset: Preset::Means("any, or none"),
            about: "ALPN protocols; the client must offer at least one of them.",
            needs_restart: false,
            read: |field, accepts| accepts.application_protocols = protocols(field),
            show: |accepts| texts(&accepts.application_protocols),
        },
    ],
};

fn server_names(field: &Field<'_>) -> Vec<String> {
    let name = |field: &Field<'_>| field.parse(values::route_host)??.to_ascii_lowercase().into();
    field.items().iter().filter_map(name).collect()
}

fn protocols(field: &Field<'_>) -> Vec<String> {
    field.items().iter().filter_map(|field| field.parse(values::alpn)).collect()
}

fn texts(texts: &[String]) -> Value {
    list(texts.iter().map(|text| text.as_str().into()))
}
