//! List-valued header fields (RFC 9110 section 5.6.1).

use http::{HeaderMap, header::AsHeaderName};

/// Iterates over the members of a list-valued field, over all its lines, without white space and empty members. A line
/// that is not ASCII yields one member, `?`, which is not a token.
pub(crate) fn members(headers: &HeaderMap, name: impl AsHeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().map(|line| line.to_str().unwrap_or("?"));
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|member| !member.is_empty())
}

/// Returns whether a list-valued field has this token, in any case.
pub(crate) fn has(headers: &HeaderMap, name: impl AsHeaderName, token: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, header::CONNECTION};

    #[test]
    fn members_of_all_lines_are_found() {
        let mut headers = HeaderMap::new();
        for line in ["close, ,Upgrade", "", "x"] {
            headers.append(CONNECTION, HeaderValue::from_static(line));
        }
        headers.append(CONNECTION, HeaderValue::from_bytes(b"close\xff").expect("a value"));
        assert_eq!(members(&headers, CONNECTION).collect::<Vec<_>>(), ["close", "Upgrade", "x", "?"]);
        assert!(has(&headers, CONNECTION, "upgrade") && !has(&headers, CONNECTION, "keep-alive"));
    }
}
