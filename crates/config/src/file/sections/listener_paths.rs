//! In which form paths are matched and sent on.

use crate::{
    file::schema::{Key, Preset, Section},
    model::Paths,
    words::{name, switch, word},
};

pub(super) const PATHS: Section<Paths> = Section {
    path: "listeners[].paths",
    about: "The form in which a request's path is matched and forwarded. Paths that a server treats as one must be one \
            for routes, or a `respond: {status: 403}` on `/admin` covers one spelling of it only.",
    keys: &[
        Key {
            name: "normalize",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "`.` and `..` segments are removed, and escapes of letters, digits, `-`, `.`, `_` and `~` are \
                    decoded; a `%` without two hexadecimal digits is a 400. A path that is normal already costs \
                    nothing.",
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
            about: "What happens to a path with `%2F`, `%5C`, `%00` or a backslash: a 400, or it passes as it is. `keep` is \
                    for servers that never decode a segment before they have split the path.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.escaped_slashes, word),
            show: |paths| name(paths.escaped_slashes).into(),
        },
        Key {
            name: "parameters",
            value: "`reject` or `keep`",
            preset: Preset::Is("reject"),
            about: "What happens to a path with a `;`: a 400, or it passes as it is. `keep` is for servers to which `;` is \
                    a character like any other; those that follow the Java servlets' rules drop what is behind it.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.parameters, word),
            show: |paths| name(paths.parameters).into(),
        },
        Key {
            name: "send",
            value: "`normalized` or `received`",
            preset: Preset::Is("normalized"),
            about: "Which path a server receives, unless the route rewrites it: the one that was matched, or the one \
                    that was received. `received` is for servers to which `//` and `/./` are different paths; they \
                    alone decide then what it means.",
            needs_restart: false,
            read: |field, paths| field.set(&mut paths.send, word),
            show: |paths| name(paths.send).into(),
        },
    ],
};
