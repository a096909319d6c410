//! How large a request's header may be.

use http::HeaderMap;

/// Bytes of a request's header, at most.
pub(super) const MOST_HEADER: usize = 64 * 1024;

/// What a field takes besides its name and value (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Whether the fields of an HTTP/2 request are larger than that.
pub(super) fn is_exceeded(headers: &HeaderMap) -> bool {
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD);
    sizes.sum::<usize>() > MOST_HEADER
}
