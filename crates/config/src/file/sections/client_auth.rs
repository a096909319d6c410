//! Client certificates of a listener.

use super::text_match::text_match;
use crate::{
    Field, Problem,
    enums::{Word, name, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{list, placed_source, put},
    },
    model::{AltName, AltNameKind, ClientAuth, ClientCheck, Place, Source},
};
use serde_json::{Value, json};

pub(super) const CLIENT_AUTH: Section<ClientAuthDraft, ClientAuth> = Section {
    path: "listeners[].tls.client_auth",
    about: "Whether clients present certificates. Verifying one costs CPU in every full handshake, in \
            addition to the gateway's own private-key operation.",
    keys: &[
        Key::new(
            "mode",
            "`off`, `optional` or `required`",
            Preset::Required,
            "`optional` requests a certificate, and one that is sent must verify; with `required` a handshake \
                    without a valid one fails.",
            |field, draft| draft.mode = field.parse(word),
            |client_auth| name(Asked::from(client_auth)).into(),
        ),
        Key::new(
            "ca",
            "path, or PEM text",
            Preset::Means("none"),
            "The CA certificates in PEM that clients' certificates must chain to. Each is a trust anchor by \
                    itself: with an intermediate CA alone, only its own clients are accepted. Needed unless `mode` is \
                    `off`.",
            |field, draft| draft.ca = field.placed(Field::pem),
            |client_auth| placed_source(check(client_auth).and_then(|check| check.ca.as_ref())),
        ),
        Key::new(
            "crl",
            "path, or PEM text",
            Preset::Means("none"),
            "Certificate revocation lists in PEM, of every CA that a client's certificate may chain through: \
                    without a current list from its issuer, a certificate is refused. A changed list takes effect as \
                    soon as the file changes, even if it revokes no certificate: open HTTP connections end, and \
                    earlier sessions are not resumed.",
            |field, draft| draft.crl = field.placed(Field::pem),
            |client_auth| placed_source(check(client_auth).and_then(|check| check.revoked.as_ref())),
        ),
    ],
};

/// Values read for `client_auth`.
#[derive(Default)]
pub(super) struct ClientAuthDraft {
    mode: Option<Asked>,
    ca: Option<(Source, Place)>,
    crl: Option<(Source, Place)>,
}

/// Reads whether clients present certificates.
pub(super) fn client_auth(field: &Field<'_>) -> ClientAuth {
    if field.is_scalar() {
        return short_client_auth(field);
    }
    let mut draft = ClientAuthDraft::default();
    CLIENT_AUTH.read(field, &mut draft);
    let crl = draft.crl;
    let check = |(bundle, place)| Box::new(ClientCheck { revoked: crl, ..*ClientCheck::ca(bundle, place) });
    match (draft.mode, draft.ca) {
        (Some(Asked::Optional), Some(ca)) => ClientAuth::Optional(check(ca)),
        (Some(Asked::Required), Some(ca)) => ClientAuth::Required(check(ca)),
        (Some(asked @ (Asked::Optional | Asked::Required)), None) if field.entry("ca").is_none() => {
            field.error(without_ca(asked));
            ClientAuth::Off
        }
        _ => ClientAuth::Off,
    }
}

/// Reads the short form, which can only be `off`: other modes need a CA.
fn short_client_auth(field: &Field<'_>) -> ClientAuth {
    if let Some(asked @ (Asked::Optional | Asked::Required)) = field.parse(word) {
        field.error(without_ca(asked));
    }
    ClientAuth::Off
}

fn without_ca(asked: Asked) -> Problem {
    let mode = name(asked);
    Problem::new(
        "no CA to verify client certificates",
        format!("write `client_auth: {{mode: {mode}, ca: clients-ca.pem}}`"),
    )
}

pub(super) fn show(client_auth: &ClientAuth) -> Value {
    let Some(check) = check(client_auth) else { return "off".into() };
    let mut shown = CLIENT_AUTH.show(client_auth);
    let pins = |pins: &[[u8; 32]]| list(pins.iter().map(|pin| hexadecimal(pin).into()));
    put(
        &mut shown,
        [
            ("certificates", pins(&check.certificates)),
            ("public_keys", pins(&check.public_keys)),
            ("names", list(check.names.iter().map(alt_name))),
        ],
    );
    shown
}

fn check(client_auth: &ClientAuth) -> Option<&ClientCheck> {
    match client_auth {
        ClientAuth::Off => None,
        ClientAuth::Optional(check) | ClientAuth::Required(check) => Some(check),
    }
}

fn alt_name(name: &AltName) -> Value {
    let kind = match name.kind {
        AltNameKind::Dns => "dns",
        AltNameKind::Uri => "uri",
        AltNameKind::Email => "email",
        AltNameKind::Ip => "ip",
    };
    json!({ kind: text_match(&name.text) })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The mode of client authentication.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Off,
    Optional,
    Required,
}

impl From<&ClientAuth> for Asked {
    fn from(client_auth: &ClientAuth) -> Self {
        match client_auth {
            ClientAuth::Off => Self::Off,
            ClientAuth::Optional(_) => Self::Optional,
            ClientAuth::Required(_) => Self::Required,
        }
    }
}

impl Word for Asked {
    const WHAT: &'static str = "a mode of client authentication";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("optional", Self::Optional),
        ("required", Self::Required),
        ("false", Self::Off),
        ("no", Self::Off),
    ];
}
