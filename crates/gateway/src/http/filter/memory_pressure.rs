//! Refusal of requests while memory is short.

use crate::{
    http::{
        body::client_body::ClientBody,
        error::refusal::{MEMORY_LIMIT, Refusal},
        request::Request,
    },
    memory::{self, Stage},
    telemetry::memory::refused,
};
use http_body::Body;
use std::time::Duration;

/// Declared size from which a body is refused while memory is scarce: its buffers would be full for a while.
const LARGE: u64 = 1 << 20;

/// Time after which clients may try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Returns the refusal of a request that memory has no room for.
pub(crate) fn refusal(request: &Request, body: &ClientBody) -> Option<Refusal> {
    let what = match memory::stage() {
        Stage::Normal => return None,
        Stage::Scarce if body.size_hint().lower() > LARGE => "body",
        Stage::Scarce => return None,
        Stage::Refusing | Stage::Full => "request",
    };
    refused(what);
    let text = "The server is short of memory; try again later.\n";
    let refusal = Refusal::page(MEMORY_LIMIT, 503, text, &request.headers);
    Some(refusal.logged_as(MEMORY_LIMIT).retry_after(RETRY_AFTER))
}
