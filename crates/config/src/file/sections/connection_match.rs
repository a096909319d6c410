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
        Key::new(
            "server_names",
            "list of hosts",
            Preset::Means("any, or none"),
            "The client's SNI: `example.com`, or `*.example.com` for all names below it, at any \
                    depth.",
            |field, accepts| accepts.server_names = server_names(field),
            |accepts| texts(&accepts.server_names),
        ),
        Key::new(
            "transport",
            "`tls` or `plain`",
            Preset::Means("both"),
            "Whether the client begins with a TLS handshake.",
            |field, accepts| accepts.transport = field.parse(word),
            |accepts| accepts.transport.map(name).into(),
        ),
        Key::new(
            "application_protocols",
            "list of protocols",
            Preset::Means("any, or none"),
            "ALPN protocols; the client must offer at least one of them.",
            |field, accepts| accepts.application_protocols = protocols(field),
            |accepts| texts(&accepts.application_protocols),
        ),
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
