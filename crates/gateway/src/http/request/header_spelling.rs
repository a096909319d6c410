//! Header names that upstreams may read as the same.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Removes a header in all spellings that upstreams may read as this one.
pub(crate) fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    let reads_alike = |other: &&HeaderName| is_same(other.as_str(), name.as_str());
    let alike: Vec<HeaderName> = headers.keys().filter(reads_alike).cloned().collect();
    alike.iter().for_each(|name| _ = headers.remove(name));
}

/// Removes every header that upstreams may read as one of these names, but that has another spelling than all of them.
pub(crate) fn keep_only(headers: &mut HeaderMap, names: &[HeaderName]) {
    let is_other = |name: &&HeaderName| {
        !names.contains(name) && names.iter().any(|kept| is_same(name.as_str(), kept.as_str()))
    };
    let others: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    others.iter().for_each(|name| _ = headers.remove(name));
}

/// Returns whether a header is present in any spelling that upstreams may read as this one.
pub(crate) fn contains(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.contains_key(name) || headers.keys().any(|other| is_same(other.as_str(), name.as_str()))
}

/// Replaces a header in all its spellings.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    remove(headers, &name);
    headers.insert(name, value);
}

/// Returns whether two names are the same for an upstream that maps `-` to `_`.
pub(crate) fn is_same(name: &str, other: &str) -> bool {
    let mapped = |byte: u8| if byte == b'_' { b'-' } else { byte };
    name.len() == other.len() && name.bytes().map(mapped).eq(other.bytes().map(mapped))
}

/// Returns whether a name starts like this for an upstream that maps `-` to `_`, as CGI does (RFC 3875 section
/// 4.1.18).
pub(crate) fn reads_as(name: &str, beginning: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| byte == wanted || byte == b'_' && wanted == b'-';
    name.len() >= beginning.len() && name.bytes().zip(beginning.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_that_no_condition_reads_are_removed() {
        let mut headers = HeaderMap::new();
        for name in ["x-a-b", "x_a-b", "x_a_b", "y_a", "y-a", "z_a"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        keep_only(&mut headers, &["x-a-b", "y_a", "y-a"].map(HeaderName::from_static));
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["x-a-b", "y-a", "y_a", "z_a"]);
    }

    #[test]
    fn all_spellings_are_one_name() {
        let mut headers = HeaderMap::new();
        for name in ["x-a-b", "x_a-b", "x_a_b", "x-a-bc", "x-ab"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        for name in ["x-a-b", "x_a-b"] {
            assert!(contains(&headers, &HeaderName::from_static(name)), "{name}");
        }
        set(&mut headers, HeaderName::from_static("x-a_b"), HeaderValue::from_static("2"));
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["x-a-bc", "x-a_b", "x-ab"]);
        assert!(!contains(&headers, &HeaderName::from_static("x-b")));
    }
}
