//! Request size limits.

use super::{FieldPolicy::Read, STRICT, Schema};

pub(crate) const BUFFER: Schema = Schema {
    name: "envoy.extensions.filters.http.buffer.v3.Buffer",
    fields: &[(
        "max_request_bytes",
        Read("a larger body gets 413; a body without `content-length` is streamed to the upstream"),
    )],
    others: STRICT,
};

pub(crate) const BUFFER_PER_ROUTE: Schema = Schema {
    name: "envoy.extensions.filters.http.buffer.v3.BufferPerRoute",
    fields: &[("disabled", Read("")), ("buffer", Read(""))],
    others: STRICT,
};
