//! A certificate's private key on key servers.

use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{KeySource, Keyless, KeylessTls, Place, Source, key_server::Address},
    values::timeout,
    words::{switch, word},
};

pub(super) const KEY: Section = Section {
    path: "listeners[].certificates[].key",
    about: "A private key that is not on this machine.",
    keys: &[Key {
        name: "keyless",
        value: "mapping",
        preset: Preset::Required,
        about: "The key is on key servers (`quadrille keyserver`, or others that speak the protocol); only the \
                certificate is here.",
    }],
};

pub(super) const KEYLESS: Section = Section {
    path: "listeners[].certificates[].key.keyless",
    about: "Key servers, and how they are asked. Certificates with the same servers share their connections. Every \
            result is checked with the certificate's public key; a server that returns a wrong one is not asked again \
            for a minute or more.",
    keys: &[
        Key {
            name: "servers",
            value: "list of `host:port` or `unix:/path`",
            preset: Preset::Required,
            about: "All should hold the same keys. Every operation goes to the one that will probably answer first, and to \
                    another if that fails. The port is 2407 if left out.",
        },
        Key {
            name: "ca",
            value: "path, or PEM text",
            preset: Preset::Means("none"),
            about: "The CA certificates in PEM that the servers' certificates must lead to. Needed unless all servers \
                    are Unix sockets.",
        },
        Key {
            name: "certificate",
            value: "path, or PEM text",
            preset: Preset::Means("none"),
            about: "The gateway's own certificate in PEM, by which the servers know it. Needed with `ca`.",
        },
        Key {
            name: "key",
            value: "path, or PEM text",
            preset: Preset::Means("none"),
            about: "The key of `certificate` in PEM, not encrypted. It opens the key servers, not the site. Needed with \
                    `ca`.",
        },
        Key {
            name: "protocol",
            value: "`auto`, `batched` or `compatible`",
            preset: Preset::Is("auto"),
            about: "`batched` is our own mode, over TLS 1.3, with many operations in a frame; `compatible` is what other \
                    keyless servers speak, with 1 KiB for each operation. `auto` takes our own where the server has it.",
        },
        Key {
            name: "padding",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Pad frames of our own mode to multiples of 1 KiB, so that their lengths tell less. `compatible` always \
                    pads.",
        },
        Key {
            name: "timeout",
            value: "duration",
            preset: Preset::Is("5s"),
            about: "An operation without a result after this time fails, and its handshake with it. It bounds how long \
                    handshakes wait while all servers are away.",
        },
        Key {
            name: "hedge",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Ask a second server when an operation takes longer than 99 of 100 do. Costs at most a tenth more \
                    operations.",
        },
        Key {
            name: "fallback",
            value: "path, or PEM text",
            preset: Preset::Means("none"),
            about: "The private key itself, used only while no server can be asked. It brings back to the gateway what \
                    keyless operation takes away from it.",
        },
    ],
};

/// Where the key is.
pub(super) fn key(field: &Field<'_>) -> Option<KeySource> {
    if !field.is_mapping() {
        return field.pem().map(KeySource::Pem);
    }
    let keys = field.mapping(&KEY)?;
    keyless(&keys.require("keyless")?).map(|keyless| KeySource::Keyless(Box::new(keyless)))
}

fn keyless(field: &Field<'_>) -> Option<Keyless> {
    let keys = field.mapping(&KEYLESS)?;
    let servers = servers(&keys.require("servers")?);
    let mut keyless = Keyless::new(servers);
    keyless.tls = tls(&keys);
    let over_tcp = keyless.servers.iter().any(|server| matches!(server, Address::Tcp { .. }));
    if over_tcp && keys.get("ca").is_none() {
        field.error(
            "servers over TCP need mutual TLS; add `ca`, `certificate` and `key`, or use `unix:/path` sockets",
        );
    }
    keys.update("protocol", &mut keyless.protocol, word);
    keys.update("padding", &mut keyless.padding, switch);
    keys.update("timeout", &mut keyless.timeout, timeout);
    keys.update("hedge", &mut keyless.hedge, switch);
    keyless.fallback = keys.get("fallback").and_then(|field| field.pem());
    Some(keyless)
}

fn servers(field: &Field<'_>) -> Vec<Address> {
    const MOST: usize = 64;
    let items = if field.is_scalar() { vec![field.clone()] } else { field.items() };
    if items.len() > MOST {
        field.error(format!("more than {MOST} servers; use fewer"));
    }
    let mut servers = Vec::new();
    for item in items {
        match item.parse(str::parse::<Address>) {
            Some(server) if servers.contains(&server) => {
                item.error("this server is listed twice; remove one");
            }
            Some(server) => servers.push(server),
            None => {}
        }
    }
    servers
}

/// All three, or none.
fn tls(keys: &Mapping<'_>) -> Option<KeylessTls> {
    let given = ["ca", "certificate", "key"].map(|name| (name, keys.get(name)));
    if given.iter().all(|(_, field)| field.is_none()) {
        return None;
    }
    let mut sources: Vec<Option<(Source, Place)>> = Vec::new();
    for (name, field) in given {
        if field.is_none() {
            keys.field().error(format!(
                "`{name}` is missing; mutual TLS needs `ca`, `certificate` and `key` together"
            ));
        }
        sources.push(field.and_then(|field| Some((field.pem()?, field.place()))));
    }
    let mut sources = sources.into_iter();
    let mut next = || sources.next().flatten();
    let (ca, certificate, key) = (next(), next(), next());
    Some(KeylessTls { ca: ca?, certificate: certificate?, key: key? })
}
