//! How large a request's header may be, where HTTP/2 carries it. hyper counts that of HTTP/1.1 as it comes.

use http::HeaderMap;

/// What a field takes besides its name and value (RFC 9113 section 6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Bytes of a header that are decoded, so that somewhat too large a one can be answered; beyond, the connection ends.
pub(super) fn decoded(limit: usize) -> u32 {
    u32::try_from(limit.saturating_mul(2)).unwrap_or(u32::MAX)
}

/// Whether the fields are larger than that.
pub(super) fn is_exceeded(headers: &HeaderMap, limit: usize) -> bool {
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD);
    sizes.sum::<usize>() > limit
}
