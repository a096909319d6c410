//! Access for pages of other origins (CORS).

use super::text_match::{pattern, patterns, show_patterns};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{list, time},
    },
    model::{Cors, TextMatch},
    quote,
    values::{self, duration},
};
use serde_json::Value;
use std::time::Duration;

pub(super) const CORS: Section<Cors> = Section {
    path: "listeners[].routes[].cors",
    about: "Access for pages of other origins (the CORS protocol of the Fetch standard). The gateway responds to \
            preflight requests itself; they need no password, token or authorization. With `methods` of the route, list \
            `OPTIONS`. It replaces the `Access-Control-*` headers of servers for the listed origins.",
    keys: &[
        Key::new(
            "origins",
            "list of origins",
            Preset::Required,
            "The origins that are allowed, such as `https://app.example`. One `*` stands for any characters: \
                    `https://*.example`, or `*` alone for every origin.",
            |field, cors| cors.origins = patterns(field),
            |cors| show_patterns(&cors.origins),
        ),
        Key::new(
            "methods",
            "list of methods",
            Preset::Means("GET, HEAD and POST"),
            "The methods that scripts may use in addition to GET, HEAD and POST.",
            |field, cors| cors.methods = texts(field),
            |cors| show_texts(&cors.methods),
        ),
        Key::new(
            "headers",
            "list of headers",
            Preset::Means("those that need no permission"),
            "The request headers that scripts may set.",
            |field, cors| cors.headers = texts(field),
            |cors| show_texts(&cors.headers),
        ),
        Key::new(
            "expose",
            "list of headers",
            Preset::Means("those that need no permission"),
            "The response headers that scripts may read.",
            |field, cors| cors.expose = texts(field),
            |cors| show_texts(&cors.expose),
        ),
        Key::new(
            "max_age",
            "duration",
            Preset::Means("that of the browser, 5 s"),
            "The time for which browsers cache the response to a preflight request.",
            |field, cors| field.set(&mut cors.max_age, |text| Ok(duration(text)?.as_secs().to_string())),
            |cors| show_age(&cors.max_age),
        ),
        Key::new(
            "credentials",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether scripts may send cookies and passwords. Not with the origin `*`: any page could act for the user.",
            |field, cors| field.set(&mut cors.credentials, switch),
            |cors| cors.credentials.then_some(true).into(),
        ),
    ],
};

/// Reads the policy of a route.
pub(super) fn cors(field: &Field<'_>) -> Option<Cors> {
    let mut cors = Cors::default();
    CORS.read(field, &mut cors)?;
    let is_any = |origin: &TextMatch| pattern("*").as_ref() == Ok(origin);
    if cors.credentials && cors.origins.iter().any(is_any) {
        field.at("credentials").error(Problem::new(
            "with the origin `*`, any page could act for the user",
            "list the origins, or remove this",
        ));
    }
    Some(cors)
}

/// Reads a list of tokens, as they are sent: separated by commas.
fn texts(field: &Field<'_>) -> String {
    let token = |text: &str| match values::header_name(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) if text == "*" => Ok(text.to_owned()),
        Err(_) => Err(Problem::from(format!("{} cannot be in this list", quote(text)))),
    };
    let texts: Vec<_> = field.items().iter().filter_map(|field| field.parse(token)).collect();
    texts.join(", ")
}

fn show_texts(texts: &str) -> Value {
    list(texts.split(',').map(str::trim).filter(|text| !text.is_empty()).map(Value::from))
}

fn show_age(seconds: &str) -> Value {
    match seconds.parse() {
        Ok(seconds) => time(Duration::from_secs(seconds)),
        Err(_) => crate::file::shown::text(seconds),
    }
}
