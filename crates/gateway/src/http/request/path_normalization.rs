//! Path normalization: one form for all spellings of a path that upstreams may read as the same (RFC 3986 section
//! 6.2.2).

use quadrille_config::model::{Ambiguous, Paths};
use std::borrow::Cow;

/// Returns the normalized path, if it differs from the original.
///
/// # Errors
/// Returns the text for the client if the path is rejected.
pub(crate) fn normalized(path: &str, paths: &Paths) -> Result<Option<String>, &'static str> {
    if is_normal(path.as_bytes(), paths)? {
        return Ok(None);
    }
    let path = match paths.normalize {
        true => decoded(path),
        false => path.into(),
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(segment) = parts.next() {
        let last = parts.peek().is_none();
        match segment {
            "." | ".." if paths.normalize => {
                if segment == ".." {
                    segments.pop();
                }
                if last {
                    segments.push("");
                }
            }
            "" if paths.merge_slashes && !last => {}
            _ => segments.push(segment),
        }
    }
    Ok(Some(format!("/{}", segments.join("/"))))
}

/// Returns whether the path is in normal form: most paths are only scanned and never copied.
fn is_normal(path: &[u8], paths: &Paths) -> Result<bool, &'static str> {
    let mut normal = true;
    for (at, byte) in path.iter().enumerate() {
        let rest = &path[at + 1..];
        match byte {
            b'/' => {
                let doubled = paths.merge_slashes && rest.first() == Some(&b'/');
                normal &= !(doubled || paths.normalize && begins_with_dots(rest));
            }
            b'%' => {
                let escaped = unescaped(rest);
                if paths.escaped_slashes == Ambiguous::Reject && matches!(escaped, Some(b'/' | b'\\' | 0)) {
                    return Err("The path has an escaped slash.\n");
                }
                if paths.normalize {
                    // A lone `%` is rejected: decoding the characters after it could complete an escape.
                    normal &= !is_unreserved(escaped.ok_or("The path has a broken escape.\n")?);
                }
            }
            b'\\' if paths.escaped_slashes == Ambiguous::Reject => return Err("The path has a backslash.\n"),
            b';' if paths.parameters == Ambiguous::Reject => return Err("The path has a parameter.\n"),
            _ => {}
        }
    }
    Ok(normal)
}

/// Returns whether the segment is `.` or `..`.
fn begins_with_dots(rest: &[u8]) -> bool {
    let dots = rest.iter().take_while(|&&byte| byte == b'.').count();
    matches!(dots, 1 | 2) && rest.get(dots).is_none_or(|&byte| byte == b'/')
}

/// Decodes the two hexadecimal digits after a `%`.
fn unescaped(digits: &[u8]) -> Option<u8> {
    let digit =
        |at: usize| char::from(*digits.get(at)?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(0)? << 4 | digit(1)?)
}

/// Returns whether the character is unreserved (RFC 3986 section 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Decodes the escapes of unreserved characters.
fn decoded(path: &str) -> Cow<'_, str> {
    let mut pieces = path.split('%');
    let Some(first) = pieces.next().filter(|first| first.len() < path.len()) else { return path.into() };
    let mut decoded = String::with_capacity(path.len());
    decoded.push_str(first);
    for piece in pieces {
        match unescaped(piece.as_bytes()).filter(|&byte| is_unreserved(byte)) {
            Some(byte) => {
                decoded.push(char::from(byte));
                decoded.push_str(&piece[2..]);
            }
            None => {
                decoded.push('%');
                decoded.push_str(piece);
            }
        }
    }
    decoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::SentPath;

    const STRICT: Paths = Paths {
        normalize: true,
        merge_slashes: true,
        escaped_slashes: Ambiguous::Reject,
        parameters: Ambiguous::Reject,
        send: SentPath::Normalized,
    };
    const DOTS: Paths = Paths { normalize: true, ..Paths::UNCHANGED };
    const SLASHES: Paths = Paths { merge_slashes: true, ..Paths::UNCHANGED };

    #[test]
    fn spellings_of_one_path_become_one() {
        for (before, paths, after) in [
            ("/a/b", STRICT, None),
            ("/", STRICT, None),
            ("/a/.../.b/c..d/..e/", STRICT, None),
            ("/a%20b/%C3%A4%25", STRICT, None),
            ("/a/../b", DOTS, Some("/b")),
            ("/a/./b", DOTS, Some("/a/b")),
            ("/a/..", DOTS, Some("/")),
            ("/a/.", DOTS, Some("/a/")),
            ("/../../x", DOTS, Some("/x")),
            ("/a/%2e%2E/b", DOTS, Some("/b")),
            ("/a/.%2e", DOTS, Some("/")),
            ("/%61dmin%7e%2f", DOTS, Some("/admin~%2f")),
            ("/a//../b", DOTS, Some("/a/b")),
            ("/a/../b", SLASHES, None),
            ("//a///b/", SLASHES, Some("/a/b/")),
            ("//", SLASHES, Some("/")),
            ("//a/../b", STRICT, Some("/b")),
            ("/a;b/%2f\\%zz", Paths::UNCHANGED, None),
        ] {
            assert_eq!(normalized(before, &paths).as_ref().map(Option::as_deref), Ok(after), "{before}");
        }
    }

    #[test]
    fn what_is_normal_stays() {
        for path in ["/a/%2e%2e/%2e/b%7E", "//x/..//y/.", "/%41/%2E%2E%2E"] {
            let once = normalized(path, &STRICT).expect("a path").expect("another");
            assert_eq!(normalized(&once, &STRICT), Ok(None), "{path} -> {once}");
        }
    }

    #[test]
    fn what_servers_read_in_different_ways_is_refused() {
        for path in
            ["/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/a;b", "/a%", "/a%2", "/a%2%66", "/a%zz"]
        {
            assert!(normalized(path, &STRICT).is_err(), "{path}");
        }
        let kept = Paths { escaped_slashes: Ambiguous::Keep, parameters: Ambiguous::Keep, ..STRICT };
        assert_eq!(normalized("/a%2fb;c/%61", &kept), Ok(Some("/a%2fb;c/a".into())));
    }
}
