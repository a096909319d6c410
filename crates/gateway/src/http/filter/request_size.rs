//! Limits on the size of requests: headers, URLs and bodies.

use crate::http::{error::refusal::Refusal, request::Request};
use http::{HeaderMap, header};
use quadrille_config::model::RequestLimits;

/// Size of a field in addition to its name and value (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Maximum number of header bytes that are decoded. A header somewhat over the limit gets a response; a larger one
/// ends the connection.
pub(crate) fn decoded(limit: usize) -> u32 {
    u32::try_from(limit.saturating_mul(2)).unwrap_or(u32::MAX)
}

/// Returns the limit that the header exceeds, as a status and a text. For HTTP/1.1, hyper limits the fields and
/// bytes.
pub(crate) fn exceeded(request: &Request, limits: &RequestLimits) -> Option<(u16, &'static str)> {
    let url = request.uri.path_and_query().map_or(0, |url| url.as_str().len());
    if limits.url.is_some_and(|limit| url > limit) {
        return Some((414, "The URL is too long.\n"));
    }
    if request.is_multiplexed()
        && (url + bytes(&request.headers) > limits.header || fields(&request.headers) > limits.fields.get())
    {
        return Some((431, "The header is too large.\n"));
    }
    None
}

/// The response to a request whose declared body is too large.
pub(crate) fn too_large(request: &Request) -> Refusal {
    Refusal::page(TOO_LARGE, 413, "The body is too large.\n", &request.headers).logged_as(TOO_LARGE)
}

/// Text for the log.
const TOO_LARGE: &str = "body too large";

fn bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD).sum()
}

/// Counts the fields. Cookies count as one field, as in HTTP/1.1 (RFC 9113 section 8.2.3).
fn fields(headers: &HeaderMap) -> usize {
    headers.len() - headers.get_all(header::COOKIE).iter().count().saturating_sub(1)
}
