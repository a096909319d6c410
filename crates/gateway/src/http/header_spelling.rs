//! Names of headers as servers may read them.

use http::{HeaderMap, HeaderName};

/// Removes a header, in all spellings that servers may read as this one.
pub(super) fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    headers.remove(name);
    let is_other = |other: &&HeaderName| {
        other.as_str().len() == name.as_str().len() && reads_as(other.as_str(), name.as_str())
    };
    let others: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    for other in others {
        headers.remove(other);
    }
}

/// Whether a name begins like this to a server that makes `_` of `-`, as CGI does (RFC 3875 section 4.1.18).
pub(super) fn reads_as(name: &str, beginning: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| byte == wanted || byte == b'_' && wanted == b'-';
    name.len() >= beginning.len() && name.bytes().zip(beginning.bytes()).all(same)
}
