//! How large bodies of requests may be.

use super::{FieldPolicy::Read, STRICT, Schema};

pub(crate) const BUFFER: Schema = Schema {
    name: "envoy.extensions.filters.http.buffer.v3.Buffer",
    fields: &[(
        "max_request_bytes",
        Read("more is answered with 413; a body that does not say its length goes to the server as it comes"),
    )],
    others: STRICT,
};

pub(crate) const BUFFER_PER_ROUTE: Schema = Schema {
    name: "envoy.extensions.filters.http.buffer.v3.BufferPerRoute",
    fields: &[("disabled", Read("")), ("buffer", Read(""))],
    others: STRICT,
};
