//! Regular expressions of PCRE that match anywhere, as expressions of RE2 that match a whole text.

/// Converts an expression. Its groups keep their numbers.
///
/// # Errors
/// If the expression needs look-around, back-references or other features that RE2 does not have.
pub fn whole(expression: &str, ignore_case: bool) -> Result<String, String> {
    let case = if ignore_case { "(?i)" } else { "" };
    let whole = match simple_core(expression) {
        Some((starts, core, ends)) => {
            let before = if starts { "" } else { ".*?" };
            let after = if ends { "" } else { ".*" };
            let core = if core.contains('|') && !(starts && ends) { format!("(?:{core})") } else { core };
            format!("{case}{before}{core}{after}")
        }
        None => format!("{case}.*?(?:{expression}).*"),
    };
    match quadrille_config::values::whole_regex(&whole) {
        Ok(_) => Ok(whole),
        Err(_) => Err(format!(
            "`{expression}` is not an expression of RE2, which has no look-around and no back-references"
        )),
    }
}

/// Returns the inside of an expression without alternatives at its top level, and whether it is anchored at its
/// beginning and at its end.
fn simple_core(expression: &str) -> Option<(bool, String, bool)> {
    let (mut depth, mut escaped, mut in_class) = (0_i32, false, false);
    let mut last_is_anchor = false;
    for c in expression.chars() {
        last_is_anchor = c == '$' && !escaped && !in_class && depth == 0;
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            '|' if !in_class && depth == 0 => return None,
            _ => {}
        }
    }
    let core = expression.strip_prefix('^');
    let starts = core.is_some();
    let core = core.unwrap_or(expression);
    let ends = last_is_anchor && core.ends_with('$');
    let core = if ends { &core[..core.len() - 1] } else { core };
    // A remaining anchor would not match inside the frame.
    let is_plain = !core.starts_with('^');
    is_plain.then(|| (starts, core.to_owned(), ends))
}

/// Returns the expression without its look-around, which matches at least as much.
pub fn without_lookaround(expression: &str) -> String {
    const OPENINGS: [&str; 4] = ["(?!", "(?=", "(?<!", "(?<="];
    let mut kept = String::new();
    let mut rest = expression;
    while !rest.is_empty() {
        if OPENINGS.iter().any(|opening| rest.starts_with(opening)) {
            rest = &rest[group_end(rest)..];
            continue;
        }
        let escaped = rest.starts_with('\\');
        let length = rest.chars().take(if escaped { 2 } else { 1 }).map(char::len_utf8).sum();
        kept.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    kept
}

/// Returns the length of the group at the beginning of an expression.
fn group_end(expression: &str) -> usize {
    let (mut depth, mut escaped) = (0, false);
    for (at, c) in expression.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    expression.len()
}

/// Returns the texts of an alternation of plain words in `^(a|b)$`, such as methods.
pub fn words(expression: &str) -> Option<Vec<String>> {
    let inside = expression.strip_prefix('^').unwrap_or(expression);
    let inside = inside.strip_suffix('$').unwrap_or(inside);
    let inside = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')).unwrap_or(inside);
    let inside = inside.strip_prefix("?:").unwrap_or(inside);
    let words: Vec<_> = inside.split('|').map(str::to_owned).collect();
    let is_word = |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    words.iter().all(is_word).then_some(words)
}

/// Escapes a text for use in an expression.
pub fn literal(text: &str) -> String {
    regex::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_whole_paths() {
        for (expression, expected) in [
            (r"\.php$", r".*?\.php"),
            (r"^/api/(.*)$", "/api/(.*)"),
            (r"^/a", "/a.*"),
            (r"^/a|/b$", ".*?(?:^/a|/b$).*"),
            (r"\.(js|css)$", r".*?(?:\.(js|css))"),
            (r"^/x\$", r"/x\$.*"),
        ] {
            assert_eq!(whole(expression, false).as_deref(), Ok(expected), "{expression}");
        }
        assert_eq!(whole("^/a$", true).as_deref(), Ok("(?i)/a"));
        assert!(whole("^/(?!b)", false).is_err());
        assert!(whole(r"(a)\1", false).is_err());
    }

    #[test]
    fn lookaround_is_left_out() {
        assert_eq!(without_lookaround(r"/\.(?!well-known(/|$)).*x"), r"/\..*x");
        assert_eq!(without_lookaround(r"\(?!a"), r"\(?!a");
    }

    #[test]
    fn lists_of_methods() {
        assert_eq!(words("^(GET|HEAD)$"), Some(vec!["GET".into(), "HEAD".into()]));
        assert_eq!(words("^(GET|H.*)$"), None);
    }
}
