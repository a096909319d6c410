//! Variables in single values: `${NAME}` and `${NAME:-default}` from the environment, and `$file{path}`.
//!
//! `$${` and `$$file{` stand for the texts `${` and `$file{`. `${1}` is not a variable: it is a group of a regular
//! expression. A value stays one value: its text is not read as YAML again.

use crate::{Problem, suggest::quote};
use zeroize::Zeroizing;

/// The sources of values.
pub(super) trait Surroundings {
    /// Returns a variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the text of a file.
    fn file(&mut self, path: &str) -> Result<Zeroizing<String>, Problem>;
}

/// Returns the text with its variables replaced; `None` if it has none.
pub(super) fn expanded(
    text: &str,
    from: &mut impl Surroundings,
) -> Result<Option<Zeroizing<String>>, Problem> {
    if !text.contains("${") && !text.contains("$file{") {
        return Ok(None);
    }
    let mut made = Zeroizing::new(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = if let Some(after) = rest.strip_prefix("$${") {
            made.push_str("${");
            after
        } else if let Some(after) = rest.strip_prefix("$$file{") {
            made.push_str("$file{");
            after
        } else if let Some(after) = rest.strip_prefix("$file{") {
            let (path, after) = braced(after, "$file{")?;
            made.push_str(&from.file(path)?);
            after
        } else if let Some(after) = rest.strip_prefix("${") {
            let (inside, after) = braced(after, "${")?;
            match variable(inside, from)? {
                Some(value) => made.push_str(&value),
                None => made.push_str(&rest[..rest.len() - after.len()]),
            }
            after
        } else {
            made.push('$');
            &rest[1..]
        };
    }
    made.push_str(rest);
    Ok(Some(made))
}

/// Returns the text for which [`expanded`] returns this one.
pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${").replace("$file{", "$$file{")
}

fn braced<'a>(text: &'a str, opened_by: &str) -> Result<(&'a str, &'a str), Problem> {
    text.split_once('}').ok_or_else(|| {
        Problem::new(
            format!("`{opened_by}` without a closing brace"),
            format!("close it, or write `${opened_by}` for this text"),
        )
    })
}

/// Returns the value of a variable, or its default; `None` for a group of a regular expression.
fn variable(inside: &str, from: &impl Surroundings) -> Result<Option<Zeroizing<String>>, Problem> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    if !is_name(name) {
        return Err(Problem::new(
            format!("{} is not the name of a variable", quote(name)),
            "write `${NAME}` or `${NAME:-default}`, or `$${` for the text `${`",
        ));
    }
    let value = from.variable(name).filter(|value| default.is_none() || !value.is_empty());
    match value.or_else(|| default.map(str::to_owned)) {
        Some(value) => Ok(Some(Zeroizing::new(value))),
        None => Err(Problem::new(
            format!("the environment variable {} is not set", quote(name)),
            format!("set it, write a default as in `${{{name}:-default}}`, or `$${{` for the text `${{`"),
        )),
    }
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given;

    impl Surroundings for Given {
        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "PORT" => Some("8443".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            }
        }

        fn file(&mut self, path: &str) -> Result<Zeroizing<String>, Problem> {
            Ok(Zeroizing::new(format!("<{path}>")))
        }
    }

    fn made(text: &str) -> String {
        match expanded(text, &mut Given) {
            Ok(Some(made)) => made.to_string(),
            Ok(None) => text.to_owned(),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn values_are_replaced() {
        for (text, expected) in [
            ("0.0.0.0:${PORT}", "0.0.0.0:8443"),
            ("${PORT}${PORT}", "84438443"),
            ("${NONE:-1}", "1"),
            ("${NONE:-}", ""),
            ("${EMPTY:-1}", "1"),
            ("${EMPTY}", ""),
            ("${PORT:-1}", "8443"),
            ("$${PORT}", "${PORT}"),
            ("$$${PORT}", "$${PORT}"),
            ("$$file{a}", "$file{a}"),
            ("a $file{b/c} d", "a <b/c> d"),
            ("/${1}/$1$", "/${1}/$1$"),
            ("$PORT", "$PORT"),
            ("100$", "100$"),
        ] {
            assert_eq!(made(text), expected, "{text}");
        }
        for text in ["a", "${PORT}", "$${", "$file{a}", "$$$file{", "${1}", "$"] {
            assert_eq!(made(&escaped(text)), text);
        }
    }

    #[test]
    fn mistakes_have_remedies() {
        assert!(made("${NONE}").starts_with("the environment variable `NONE` is not set; set it"));
        assert!(made("${a.b}").contains("`a.b` is not the name of a variable; "));
        assert!(made("${}").contains("is not the name of a variable"));
        assert!(made("${PORT").contains("`${` without a closing brace; close it, or write `$${`"));
        assert!(made("$file{x").contains("or write `$$file{` for this text"));
    }
}
