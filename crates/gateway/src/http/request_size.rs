//! How large requests may be: their headers, their URLs and their bodies.

use super::{
    refusal::{self, Refusal},
    request::Request,
};
use http::{HeaderMap, header};
use quadrille_config::model::RequestLimits;

/// What a field takes besides its name and value (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Bytes of a header that are decoded, so that somewhat too large a one can be answered; beyond, the connection ends.
pub(super) fn decoded(limit: usize) -> u32 {
    u32::try_from(limit.saturating_mul(2)).unwrap_or(u32::MAX)
}

/// What its header has too much of, as a status and in words. hyper counts the fields of HTTP/1.1 and their bytes as they
/// come.
pub(super) fn exceeded(request: &Request, limits: &RequestLimits) -> Option<(u16, &'static str)> {
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

/// To a request that says that its body is larger than it may be.
pub(super) fn too_large(request: &Request) -> Refusal<'static> {
    let page = refusal::page(413, "The body is too large.\n", HeaderMap::new(), &request.headers);
    Refusal { reason: TOO_LARGE, error: Some(TOO_LARGE), ..page }
}

/// For the log.
const TOO_LARGE: &str = "body too large";

fn bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD).sum()
}

/// Cookies count as the one field that they are in HTTP/1.1 (RFC 9113 section 8.2.3).
fn fields(headers: &HeaderMap) -> usize {
    headers.len() - headers.get_all(header::COOKIE).iter().count().saturating_sub(1)
}
