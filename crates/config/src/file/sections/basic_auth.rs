//! HTTP Basic authentication.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::source,
    },
    model::{BasicAuth, PasswordHashes, Place, Rate, RouteBasicAuth, Source},
    rate::{rate, show_rate},
    values,
};
use http::HeaderName;
use serde_json::Value;
use std::sync::Arc;

pub(super) const BASIC_AUTH: Section<BasicAuthDraft, BasicAuth> = Section {
    path: "listeners[].basic_auth",
    about: "HTTP Basic authentication (RFC 7617): requests without valid credentials receive a 401 response, and \
            browsers then prompt for them. Verified credentials are cached for ten minutes, so that a password is \
            hashed once and not for each request.",
    keys: &[
        Key::new(
            "users",
            "path, or the lines themselves",
            Preset::Required,
            "A file as `htpasswd -B` writes it, read again when it changes: each line has a name, a colon and \
                    the hash of a password, by bcrypt (`$2y$`), SHA-crypt (`$5$`, `$6$`) or Argon2 (`$argon2id$`). \
                    Hashes that can be brute-forced quickly (MD5, SHA-1, DES) and plain text are refused.",
            |field, draft| draft.users = field.placed(users),
            |auth| source(&auth.users),
        ),
        Key::new(
            "realm",
            "text",
            Preset::Is("Restricted"),
            "The protection space (RFC 7235): browsers show it, and reuse credentials within it.",
            |field, draft| draft.realm = field.parse(realm),
            |auth| auth.realm.as_str().into(),
        ),
        Key::new(
            "authorization",
            "`remove` or `forward`",
            Preset::Is("remove"),
            "Whether servers receive the `Authorization` header, which contains the password.",
            |field, draft| draft.forwards = field.parse(forwards).unwrap_or_default(),
            |auth| if auth.forwards { "forward" } else { "remove" }.into(),
        ),
        Key::new(
            "user_header",
            "name of a header",
            Preset::Means("none"),
            "A header that carries the user's name to servers, such as `X-Remote-User`. The client's own is \
                    removed, on all routes that this applies to.",
            |field, draft| draft.user_header = field.parse(values::header_name),
            |auth| auth.user_header.as_ref().map(HeaderName::as_str).into(),
        ),
        Key::new(
            "guesses",
            "requests and time, or `off`",
            Preset::Is("30/m"),
            "Maximum number of wrong passwords that a network of clients (`/24` of IPv4, `/56` of IPv6) may \
                    try in a period. Beyond that, its credentials are not checked, and it receives 429 with \
                    `Retry-After`; credentials in the cache still work.",
            |field, draft| draft.guesses = field.parse(guesses),
            |auth| auth.guesses.map_or("off".into(), show_rate).into(),
        ),
    ],
};

/// Values read for Basic authentication.
#[derive(Default)]
pub(super) struct BasicAuthDraft {
    users: Option<(Source, Place)>,
    realm: Option<String>,
    forwards: bool,
    user_header: Option<HeaderName>,
    guesses: Option<Option<Rate>>,
}

/// Reads a mapping, its users alone, or `off`.
pub(super) fn basic_auth(field: &Field<'_>) -> RouteBasicAuth {
    if field.is_scalar() && field.text().is_some_and(|text| matches!(switch(text), Ok(false))) {
        return RouteBasicAuth::Off;
    }
    let mut draft = BasicAuthDraft::default();
    if field.is_scalar() {
        draft.users = field.placed(users);
    } else if BASIC_AUTH.read(field, &mut draft).is_none() {
        return RouteBasicAuth::Off;
    }
    let Some((users, users_place)) = draft.users else { return RouteBasicAuth::Off };
    RouteBasicAuth::InPlace(Arc::new(BasicAuth {
        users,
        users_place,
        hashes: PasswordHashes::Slow,
        realm: draft.realm.unwrap_or_else(|| BasicAuth::REALM.to_owned()),
        forwards: draft.forwards,
        user_header: draft.user_header,
        guesses: draft.guesses.unwrap_or_else(|| Some(BasicAuth::guesses())),
    }))
}

pub(super) fn show(auth: &RouteBasicAuth) -> Value {
    match auth {
        RouteBasicAuth::OfChain => Value::Null,
        RouteBasicAuth::Off => "off".into(),
        RouteBasicAuth::InPlace(auth) => BASIC_AUTH.show(auth),
    }
}

/// Reads the path of a file, or its lines: only lines contain a colon.
fn users(field: &Field<'_>) -> Option<Source> {
    let text = field.text()?;
    if text.contains(':') { Some(Source::inline(text)) } else { field.file().map(Source::File) }
}

/// Reads a realm that a quoted string (RFC 9110 section 5.6.4) can represent.
fn realm(text: &str) -> Result<String, Problem> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Problem::new("a realm is one line of text", "write the text that browsers show"));
    }
    Ok(text.to_owned())
}

fn forwards(text: &str) -> Result<bool, Problem> {
    match text {
        "forward" => Ok(true),
        "remove" => Ok(false),
        _ => Err(Problem::new("the header is forwarded or removed", "write `forward` or `remove`")),
    }
}

fn guesses(text: &str) -> Result<Option<Rate>, Problem> {
    if matches!(switch(text), Ok(false)) { Ok(None) } else { rate(text).map(Some) }
}
