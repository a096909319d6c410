//! The filter that limits request bodies. The limit is enforced while the body is streamed; the body is not buffered.

use crate::{
    reader::{Field, ReadMessage},
    schema,
};
use quadrille_config::{Problem, model::RouteBodyLimit};

/// Reads `envoy.extensions.filters.http.buffer.v3.Buffer`: the maximum number of bytes in a body.
pub(crate) fn buffer(field: &Field<'_>) -> Option<u64> {
    let message = field.message(&schema::BUFFER)?;
    let limit = message.require("max_request_bytes")?;
    match limit.parse(crate::values::number)? {
        0 => limit.fail(Problem::new("zero would reject every body", "write more, or remove the filter")),
        bytes => Some(bytes.into()),
    }
}

/// `envoy.extensions.filters.http.buffer.v3.BufferPerRoute`.
pub(crate) fn of_route(field: &Field<'_>) -> Option<RouteBodyLimit> {
    let message = field.message(&schema::BUFFER_PER_ROUTE)?;
    match message.one_of(&["disabled", "buffer"]) {
        Some(("buffer", own)) => buffer(&own).map(RouteBodyLimit::Bytes),
        _ if message.flag("disabled") => Some(RouteBodyLimit::Unlimited),
        _ => field.fail(Problem::new("no field is set", "write `disabled: true` or `buffer`")),
    }
}
