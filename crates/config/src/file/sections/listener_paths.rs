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
        Key::new(
            "normalize",
            "`on` or `off`",
            Preset::Is("on"),
            "`.` and `..` segments are removed, and escapes of letters, digits, `-`, `.`, `_` and `~` are \
                    decoded; a `%` without two hexadecimal digits is a 400. A path in normal form costs nothing.",
            |field, paths| field.set(&mut paths.normalize, switch),
            |paths| paths.normalize.into(),
        ),
        Key::new(
            "merge_slashes",
            "`on` or `off`",
            Preset::Is("on"),
            "Several slashes in a row become one.",
            |field, paths| field.set(&mut paths.merge_slashes, switch),
            |paths| paths.merge_slashes.into(),
        ),
        Key::new(
            "escaped_slashes",
            "`reject` or `keep`",
            Preset::Is("reject"),
            "Action for a path with `%2F`, `%5C`, `%00` or a backslash: respond with 400, or keep it \
                    unchanged. `keep` is for servers that never decode a segment before they have split the path.",
            |field, paths| field.set(&mut paths.escaped_slashes, word),
            |paths| name(paths.escaped_slashes).into(),
        ),
        Key::new(
            "parameters",
            "`reject` or `keep`",
            Preset::Is("reject"),
            "Action for a path with a `;`: respond with 400, or keep it unchanged. `keep` is for servers that \
                    treat `;` as an ordinary character; servers that follow the Java servlet rules drop the text \
                    after it.",
            |field, paths| field.set(&mut paths.parameters, word),
            |paths| name(paths.parameters).into(),
        ),
        Key::new(
            "send",
            "`normalized` or `received`",
            Preset::Is("normalized"),
            "The path that a server receives, unless the route rewrites it: the one that was matched, or the \
                    one that was received. `received` is for servers that treat `//` and `/./` as distinct paths; \
                    the server alone then decides how to interpret them.",
            |field, paths| field.set(&mut paths.send, word),
            |paths| name(paths.send).into(),
        ),
    ],
};
