//! Header names that upstreams may read as the same.

use http::{HeaderMap, HeaderName};

/// Removes a header in all spellings that upstreams may read as this one.
pub(crate) fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    let name = name.as_str();
    let reads_alike =
        |other: &&HeaderName| other.as_str().len() == name.len() && reads_as(other.as_str(), name);
    let alike: Vec<HeaderName> = headers.keys().filter(reads_alike).cloned().collect();
    alike.iter().for_each(|name| _ = headers.remove(name));
}

/// Returns whether a name starts like this for an upstream that maps `-` to `_`, as CGI does (RFC 3875 section
/// 4.1.18).
pub(crate) fn reads_as(name: &str, beginning: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| byte == wanted || byte == b'_' && wanted == b'-';
    name.len() >= beginning.len() && name.bytes().zip(beginning.bytes()).all(same)
}
