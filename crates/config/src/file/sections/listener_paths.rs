//! Normalization of request paths.

use crate::{
    enums::{name, switch, word},
    file::schema::{Key, Preset, Section},
    model::Paths,
};

pub(super) const PATHS: Section<Paths> = Section {
    path: "listeners[].paths",
    about: "Normalization of request paths, for matching and forwarding. Paths that a server treats as equal must be \
            equal for routes, or a `respond: {status: 403}` on `/admin` covers only one spelling of it.",
    keys: &[
        Key {
            name: "normalize",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "`.` and `..` segments are removed, and escapes of letters, digits, `-`, `.`, `_` and `~` are \
                    decoded; a `%` without two hexadecimal digits is a 400. A path in normal form costs nothing.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.normalize, switch),
            show: |paths| paths.normalize.into(),
        },
        Key {
            name: "merge_slashes",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Several slashes in a row become one.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.merge_slashes, switch),
            show: |paths| paths.merge_slashes.into(),
        },
        Key {
            name: "escaped_slashes",
            value: "`reject` or `keep`",
            preset: Preset::Is("reject"),
            about: "Action for a path with `%2F`, `%5C`, `%00` or a backslash: respond with 400, or keep it \
                    unchanged. `keep` is for servers that never decode a segment before they have split the path.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.escaped_slashes, word),
            show: |paths| name(paths.escaped_slashes).into(),
        },
        Key {
            name: "parameters",
            value: "`reject` or `keep`",
            preset: Preset::Is("reject"),
            about: "Action for a path with a `;`: respond with 400, or keep it unchanged. `keep` is for servers that \
                    treat `;` as an ordinary character; servers that follow the Java servlet rules drop the text \
                    after it.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.parameters, word),
            show: |paths| name(paths.parameters).into(),
        },
        Key {
            name: "send",
            value: "`normalized` or `received`",
            preset: Preset::Is("normalized"),
            about: "The path that a server receives, unless the route rewrites it: the one that was matched, or the \
                    one that was received. `received` is for servers that treat `//` and `/./` as distinct paths; \
                    the server alone then decides how to interpret them.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.send, word),
            show: |paths| name(paths.send).into(),
        },
    ],
};
