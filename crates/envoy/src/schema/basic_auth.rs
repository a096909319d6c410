//! The filter that lets users in by name and password.

use super::{
    FieldPolicy::{Ignored, Read, Refused, RefusedWith},
    STRICT, Schema,
};

pub(crate) const BASIC_AUTH: Schema = Schema {
    name: "envoy.extensions.filters.http.basic_auth.v3.BasicAuth",
    fields: &[
        ("users", Read("lines as `htpasswd -s` writes them; a file is read again when it changes")),
        ("forward_username_header", Read("what clients say there is removed")),
        ("authentication_header", RefusedWith("passwords are looked for in `authorization`", "leave it out")),
        ("allow_missing", Refused("it would let in who says no password")),
        ("emit_dynamic_metadata", Ignored("nobody reads it")),
    ],
    others: STRICT,
};
