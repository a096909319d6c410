//! Response compression.

use crate::{
    Field, Problem,
    enums::{switch, word},
    file::{
        schema::{Key, Preset, Section},
        sections::route_sticky::cookie_name,
        shown::list,
    },
    model::Compression,
    quote,
    size::{show_size, size},
};
use serde_json::Value;
use std::sync::Arc;

pub(super) const COMPRESSION: Section<Compression> = Section {
    path: "listeners[].routes[].compression",
    about: "Response compression, for clients that accept it. Responses are left unchanged if they are compressed \
            already, are partial (206), have `Cache-Control: no-transform`, or go to HTTP/1.0 clients. Buffered data \
            is flushed when the server pauses, so that events and slow responses arrive without delay.",
    keys: &[
        Key::new(
            "algorithms",
            "list of `zstd`, `br`, `gzip`",
            Preset::Is("[zstd, br, gzip]"),
            "The algorithms to offer: among those that a client prefers equally, the first is used. Each \
                    response takes up to 1 MiB of memory while it is sent.",
            |field, compression| {
                let codings: Vec<_> = field.items().iter().filter_map(|item| item.parse(word)).collect();
                compression.codings = codings;
            },
            |compression| list(compression.codings.iter().map(|coding| coding.name().into())),
        ),
        Key::new(
            "types",
            "list of media types",
            Preset::Means(
                "`text/*`, JavaScript, JSON, JSON-LD, web manifests, RSS, WebAssembly, XML and SVG",
            ),
            "The media types to compress, such as `application/json`, or `text/*` for a whole group. \
                    Images, audio, video and archives are compressed already.",
            |field, compression| {
                compression.types = field.items().iter().filter_map(|item| item.parse(media_type)).collect();
            },
            |compression| list(compression.types.iter().map(|wanted| wanted.as_str().into())),
        ),
        Key::new(
            "minimum",
            "size",
            Preset::Is("1KiB"),
            "The shortest response to compress: shorter ones fit into a packet. Responses of unknown length are compressed.",
            |field, compression| {
                field.set(&mut compression.minimum, |text| size(text).map(|size| size as u64));
            },
            |compression| show_size(compression.minimum as usize).into(),
        ),
        Key::new(
            "personal",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether responses to requests with a cookie or `Authorization`, or from clients with a \
                    certificate, are compressed too, whether or not they are code. If one of them contains a secret, \
                    such as a CSRF token, together with text that an attacker chooses, the secret can be inferred \
                    from the length (BREACH). When off, only code (CSS, JavaScript, WebAssembly, SVG, web manifests) \
                    and responses with `Cache-Control: public` are compressed among these.",
            |field, compression| field.set(&mut compression.personal, switch),
            |compression| if compression.personal { "on" } else { "off" }.into(),
        ),
        Key::new(
            "cookies",
            "list of names of cookies",
            Preset::Means("all cookies"),
            "The cookies whose responses are personal, such as the session's: responses to requests with other \
                    cookies alone, such as those of statistics or of a theme, are compressed. A `*` at the end of a name \
                    stands for any characters. List every cookie by which servers recognise users.",
            |field, compression| {
                let names = field.items().iter().filter_map(|item| item.parse(cookie_name)).collect();
                compression.cookies = Some(names);
            },
            |compression| {
                let names = compression.cookies.as_ref();
                names.map_or(Value::Null, |names| list(names.iter().map(|name| name.as_str().into())))
            },
        ),
    ],
};

/// Reads a mapping, `on` or `off`; `None` for `off`.
pub(super) fn compression(field: &Field<'_>) -> Option<Arc<Compression>> {
    let mut compression = Compression::default();
    if field.is_scalar() {
        return field.parse(switch).filter(|on| *on).map(|_| Arc::new(compression));
    }
    COMPRESSION.read(field, &mut compression)?;
    Some(Arc::new(compression))
}

pub(super) fn show(compression: Option<&Arc<Compression>>) -> Value {
    compression.map(|compression| COMPRESSION.show(compression)).into()
}

fn media_type(text: &str) -> Result<String, Problem> {
    let is_token = |part: &str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match text.split_once('/') {
        Some((group, "*")) if is_token(group) => Ok(text.to_ascii_lowercase()),
        Some((group, kind)) if is_token(group) && is_token(kind) => Ok(text.to_ascii_lowercase()),
        _ => Err(Problem::new(
            format!("{} is not a media type", quote(text)),
            "write one without parameters, such as `text/html`, or `text/*`",
        )),
    }
}
