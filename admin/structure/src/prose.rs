//! The prose of a source file: its comments and its string literals, without its code.

/// `source` with every character outside of comments and string literals replaced by a space; line breaks stay, so that a
/// position in the result is a position in `source`.
///
/// Understands Rust: nested block comments, raw strings, byte and C strings, character literals and lifetimes.
pub fn of_rust(source: &str) -> String {
    let mut prose = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, is_prose) = token(rest);
        if is_prose {
            prose.push_str(&rest[..length]);
        } else {
            prose.extend(rest[..length].chars().flat_map(blank));
        }
        debug_assert!(length >= first.len_utf8());
        rest = &rest[length..];
    }
    prose
}

/// Returns as many spaces as `c` has bytes; a line break stays.
fn blank(c: char) -> impl Iterator<Item = char> {
    let (filler, count) = if c == '\n' { ('\n', 1) } else { (' ', c.len_utf8()) };
    std::iter::repeat_n(filler, count)
}

/// The length in bytes of the token at the beginning of `rest`, and whether it is prose.
fn token(rest: &str) -> (usize, bool) {
    if rest.starts_with("//") {
        (rest.find('\n').unwrap_or(rest.len()), true)
    } else if rest.starts_with("/*") {
        (block_comment(rest), true)
    } else if let Some(length) = raw_string(rest) {
        (length, true)
    } else if let Some(inside) = rest.strip_prefix('"') {
        (1 + quoted(inside, '"'), true)
    } else if rest.starts_with('\'') {
        (character_or_lifetime(rest), false)
    } else {
        (word(rest), false)
    }
}

/// An identifier is one token, so that the `r` of `for"` does not begin a raw string.
fn word(rest: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    if length == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { length }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of `r"..."`, `br#"..."#` or `cr"..."` at the beginning of `rest`.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).map(|after| after.trim_start_matches('#'));
        after.is_some_and(|after| after.starts_with('"'))
    })?;
    let hashes = rest[prefix.len()..].bytes().take_while(|&byte| byte == b'#').count();
    let opening = prefix.len() + hashes + 1;
    let closing = format!("\"{}", "#".repeat(hashes));
    Some(rest[opening..].find(&closing).map_or(rest.len(), |at| opening + at + closing.len()))
}

/// The length up to and with the unescaped `end`.
fn quoted(rest: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        if !escaped && c == end {
            return at + end.len_utf8();
        }
        escaped = !escaped && c == '\\';
    }
    rest.len()
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut after = rest[1..].chars();
    match (after.next(), after.next()) {
        (Some('\\'), _) => 1 + quoted(&rest[1..], '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::of_rust;

    #[test]
    fn comments_and_strings_remain() {
        let source =
            "fn f(x: &'a str) { // note\n    say(\"a \\\"quoted\\\" word\", 'x', '\\'', r#\"raw \"#);\n}";
        let prose = of_rust(source);
        assert_eq!(prose.len(), source.len());
        assert_eq!(prose.lines().count(), source.lines().count());
        let words: Vec<_> = prose.split_whitespace().collect();
        assert_eq!(words, ["//", "note", "\"a", "\\\"quoted\\\"", "word\"", "r#\"raw", "\"#"]);
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(of_rust("a /* b /* c */ d */ e").trim(), "/* b /* c */ d */");
    }

    #[test]
    fn a_lifetime_does_not_begin_a_literal() {
        assert_eq!(of_rust("fn f<'a>(x: &'a str) -> &'a str { \"ß\" }").trim(), "\"ß\"");
    }

    #[test]
    fn positions_stay() {
        let source = "let ü = 'ü'; // here";
        assert_eq!(of_rust(source).find("// here"), source.find("// here"));
    }
}
