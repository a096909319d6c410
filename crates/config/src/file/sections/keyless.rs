//! Private keys on key servers.

use crate::{
    Field, Problem,
    enums::{name, switch, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{placed_source, source, time},
    },
    model::{
        KeyServerUse, KeySource, Keyless, KeylessTls, Place, Source,
        key_server::{Address, Protocol},
    },
    pkcs11_uri,
    values::timeout,
};
use serde_json::Value;

pub(super) const KEY: Section<Option<Keyless>, Keyless> = Section {
    path: "listeners[].certificates[].key",
    about: "A private key that is not on this machine.",
    keys: &[Key::new(
        "keyless",
        "mapping",
        Preset::Required,
        "The key is on key servers (`quadrille keyserver`, or others that implement the protocol); only \
                the certificate is here.",
        |field, key| *key = keyless(field),
        |keyless| KEYLESS.show(keyless),
    )],
};

pub(super) const KEYLESS: Section<KeylessDraft, Keyless> = Section {
    path: "listeners[].certificates[].key.keyless",
    about: "Key servers, and the settings of their connections, which certificates with the same servers share. Every \
            result is checked with the certificate's public key; a server that returns a wrong result is not used for \
            a minute or more.",
    keys: &[
        Key::new(
            "servers",
            "list of `host:port` or `unix:/path`",
            Preset::Required,
            "The key servers, which should all hold the same keys. Every operation goes to the one that is \
                    expected to respond first, and to another if that fails. The default port is 2407.",
            |field, draft| draft.keyless.servers = servers(field),
            |keyless| keyless.servers.iter().map(ToString::to_string).collect(),
        ),
        Key::new(
            "ca",
            "path, or PEM text",
            Preset::Means("none"),
            "The CA certificates in PEM that the servers' certificates must chain to. Needed unless all servers \
                    are Unix sockets.",
            |field, draft| draft.ca = field.placed(Field::pem),
            |keyless| show_tls(keyless, |tls| &tls.ca),
        ),
        Key::new(
            "certificate",
            "path, or PEM text",
            Preset::Means("none"),
            "The gateway's own certificate in PEM, which identifies it to the servers. Needed with \
                    `ca`.",
            |field, draft| draft.certificate = field.placed(Field::pem),
            |keyless| show_tls(keyless, |tls| &tls.certificate),
        ),
        Key::new(
            "key",
            "path, or PEM text",
            Preset::Means("none"),
            "The key of `certificate` in PEM, not encrypted. It authenticates to the key servers and is not \
                    the site's key. Needed with `ca`.",
            |field, draft| draft.key = field.placed(Field::pem),
            |keyless| show_tls(keyless, |tls| &tls.key),
        ),
        Key::new(
            "protocol",
            "`auto`, `batched` or `compatible`",
            Preset::Is("auto"),
            "`batched` is Quadrille's own mode, over TLS 1.3, with many operations in a frame; `compatible` is \
                    the protocol of other keyless servers, with 1 KiB for each operation. `auto` uses `batched` where \
                    the server supports it.",
            |field, draft| field.set(&mut draft.keyless.protocol, word),
            |keyless| name(keyless.protocol).into(),
        ),
        Key::new(
            "padding",
            "`on` or `off`",
            Preset::Is("off"),
            "Pad frames of `batched` to multiples of 1 KiB, so that their lengths reveal less. `compatible` \
                    always pads.",
            |field, draft| field.set(&mut draft.keyless.padding, switch),
            |keyless| keyless.padding.into(),
        ),
        Key::new(
            "timeout",
            "duration",
            Preset::Is("5s"),
            "Time after which an operation without a result fails, and its handshake with it. It limits the \
                    wait of handshakes while no server is reachable.",
            |field, draft| field.set(&mut draft.keyless.timeout, timeout),
            |keyless| time(keyless.timeout),
        ),
        Key::new(
            "hedge",
            "`on` or `off`",
            Preset::Is("on"),
            "Send an operation to a second server as well when it takes longer than the 99th percentile. \
                    Costs at most a tenth more operations.",
            |field, draft| field.set(&mut draft.keyless.hedge, switch),
            |keyless| keyless.hedge.into(),
        ),
        Key::new(
            "use",
            "`always` or `overflow`",
            Preset::Is("always"),
            "`overflow` computes locally, with `fallback`, and sends to the servers only signatures that \
                    would wait longer here than there.",
            |field, draft| field.set(&mut draft.keyless.usage, word),
            |keyless| name(keyless.usage).into(),
        ),
        Key::new(
            "fallback",
            "path, or PEM text",
            Preset::Means("none"),
            "The private key itself, used only while no server is reachable, or with `use: overflow`. It gives \
                    up the protection of keyless operation: the key is on the gateway again.",
            |field, draft| draft.keyless.fallback = field.pem(),
            |keyless| keyless.fallback.as_ref().map(source).into(),
        ),
    ],
};

/// Values read for key servers.
pub(super) struct KeylessDraft {
    keyless: Keyless,
    ca: Option<(Source, Place)>,
    certificate: Option<(Source, Place)>,
    key: Option<(Source, Place)>,
}

/// Reads a private key, its URI in a PKCS#11 token, or the key servers that hold it.
pub(super) fn key(field: &Field<'_>) -> Option<KeySource> {
    if !field.is_mapping() {
        if field.node().text().is_some_and(pkcs11_uri::is_uri) {
            return field.parse(pkcs11_uri::parse).map(|key| KeySource::Pkcs11(Box::new(key)));
        }
        return field.pem().map(KeySource::Pem);
    }
    let mut keyless = None;
    KEY.read(field, &mut keyless)?;
    keyless.map(|keyless| KeySource::Keyless(Box::new(keyless)))
}

pub(super) fn show(key: &KeySource) -> Value {
    match key {
        KeySource::Pem(pem) => source(pem),
        KeySource::Keyless(keyless) => KEY.show(keyless),
        KeySource::Pkcs11(key) => key.to_string().into(),
    }
}

fn keyless(field: &Field<'_>) -> Option<Keyless> {
    let mut draft =
        KeylessDraft { keyless: Keyless::new(Vec::new()), ca: None, certificate: None, key: None };
    KEYLESS.read(field, &mut draft)?;
    let over_tcp = draft.keyless.servers.iter().any(|server| matches!(server, Address::Tcp { .. }));
    if over_tcp && field.entry("ca").is_none() {
        field.error(Problem::new(
            "servers over TCP need mutual TLS",
            "add `ca`, `certificate` and `key`, or use `unix:/path` sockets",
        ));
    }
    refuse_half_of_mutual_tls(field);
    if draft.keyless.usage == KeyServerUse::Overflow && field.entry("fallback").is_none() {
        field.error(Problem::new(
            "to compute here, the private key must be here",
            "give it as `fallback`, or remove `use: overflow`",
        ));
    }
    let tls = draft.ca.zip(draft.certificate).zip(draft.key);
    let tls = tls.map(|((ca, certificate), key)| KeylessTls { ca, certificate, key });
    Some(Keyless { tls, ..draft.keyless })
}

fn servers(field: &Field<'_>) -> Vec<Address> {
    const MOST: usize = 64;
    let items = field.items_or_one();
    if items.len() > MOST {
        field.error(Problem::new(format!("more than {MOST} servers"), "use fewer"));
    }
    let mut servers = Vec::new();
    for item in items {
        match item.parse(str::parse::<Address>) {
            Some(server) if servers.contains(&server) => {
                item.error(Problem::new("this server is listed twice", "remove one"));
            }
            Some(server) => servers.push(server),
            None => {}
        }
    }
    servers
}

/// Refuses an incomplete set of `ca`, `certificate` and `key`.
fn refuse_half_of_mutual_tls(field: &Field<'_>) {
    let (given, missing): (Vec<_>, Vec<_>) =
        ["ca", "certificate", "key"].into_iter().partition(|key| field.entry(key).is_some());
    for key in missing.iter().filter(|_| !given.is_empty()) {
        field.error(Problem::new(
            format!("`{key}` is missing"),
            "mutual TLS needs `ca`, `certificate` and `key` together",
        ));
    }
}

fn show_tls(keyless: &Keyless, part: fn(&KeylessTls) -> &(Source, Place)) -> Value {
    placed_source(keyless.tls.as_ref().map(part))
}

/// Reads key servers that generate keys: there is no other key to fall back to, and only Quadrille's own mode can
/// generate one.
pub(super) fn key_servers(field: &Field<'_>) -> Option<Box<Keyless>> {
    let keyless = keyless(field)?;
    let refused = [
        (
            "fallback",
            keyless.fallback.is_some(),
            "the key is generated on the key servers, and never leaves them",
            "remove it",
        ),
        (
            "use",
            keyless.usage == KeyServerUse::Overflow,
            "nothing can be computed here without the key",
            "remove it",
        ),
        (
            "protocol",
            keyless.protocol == Protocol::Compatible,
            "the compatible mode cannot generate keys",
            "remove it, or write `auto` or `batched`",
        ),
    ];
    for (key, _, problem, remedy) in refused.into_iter().filter(|(_, is_there, ..)| *is_there) {
        if let Some(key) = field.entry(key) {
            key.error(Problem::new(problem, remedy));
        }
    }
    Some(Box::new(keyless))
}

pub(super) fn show_key_servers(keyless: Option<&Keyless>) -> Value {
    keyless.map(|keyless| KEYLESS.show(keyless)).into()
}
