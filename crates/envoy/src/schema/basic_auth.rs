//! The HTTP Basic authentication filter.

use super::{
    FieldPolicy::{Ignored, Read, Refused, RefusedWith},
    STRICT, Schema,
};

pub(crate) const BASIC_AUTH: Schema = Schema {
    name: "envoy.extensions.filters.http.basic_auth.v3.BasicAuth",
    fields: &[
        ("users", Read("lines as `htpasswd -s` writes them; a file is reloaded when it changes")),
        ("forward_username_header", Read("removed from clients' requests")),
        ("authentication_header", RefusedWith("passwords are read from `authorization`", "leave it out")),
        ("allow_missing", Refused("it would allow requests without a password")),
        ("emit_dynamic_metadata", Ignored("not used")),
    ],
    others: STRICT,
};
