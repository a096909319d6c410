//! Conditions on text: paths, headers, query parameters, names in certificates.

use super::Expression;

/// A condition on a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextMatch {
    /// The rule.
    pub rule: TextRule,
    /// Whether ASCII case is ignored. A regular expression does so by itself: `(?i)`.
    pub ignore_case: bool,
}

/// A rule for a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextRule {
    /// Is exactly this.
    Exact(String),
    /// Begins with this.
    Prefix(String),
    /// Ends with this.
    Suffix(String),
    /// Contains this.
    Contains(String),
    /// Matches this as a whole (see [`whole`]).
    Regex(Expression),
}

/// A condition on a path, without its query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathMatch {
    /// The rule.
    pub rule: PathRule,
    /// Whether ASCII case is ignored; not for regular expressions.
    pub ignore_case: bool,
}

/// A rule for a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathRule {
    /// Begins with this, as text: `/a` matches `/ab`.
    Prefix(String),
    /// Begins with these whole segments: `/a` matches `/a` and `/a/b`. Without a trailing slash; empty matches all.
    Segments(String),
    /// Is exactly this.
    Exact(String),
    /// Matches this as a whole (see [`whole`]).
    Regex(Expression),
}

/// A condition on a header of a request. If a header has several lines, one matching line suffices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderMatch {
    /// The name, in lower case. `:method`, `:path`, `:authority` and `:scheme` are the parts of the request line.
    pub name: String,
    /// The rule for its value.
    pub rule: HeaderRule,
    /// Whether the condition holds if the rule holds for no line.
    pub invert: bool,
    /// Whether a missing header counts as an empty one; otherwise the condition fails, inverted or not.
    pub missing_is_empty: bool,
}

/// A rule for a header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderRule {
    /// Is present (`true`) or absent.
    Present(bool),
    /// Matches this condition.
    Text(TextMatch),
    /// Is an integer from the first (inclusive) to the second (exclusive).
    Range(i64, i64),
}

/// A condition on a parameter of the query. If it occurs more than once, the first occurrence counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueryMatch {
    /// The name, in the form of `decode`.
    pub name: String,
    /// The condition on its value; `None` if it must only be present.
    pub value: Option<TextMatch>,
    /// Whether the value must not match, or, without a condition on it, the parameter must be absent.
    pub invert: bool,
    /// Whether names and values are decoded (`application/x-www-form-urlencoded`); Envoy compares them as sent.
    pub decode: bool,
}

/// A condition on a cookie of the request (RFC 6265 section 4.2). If it occurs more than once, the first occurrence
/// counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CookieMatch {
    /// The name.
    pub name: String,
    /// The condition on its value, without quotes; `None` if it must only be present.
    pub value: Option<TextMatch>,
    /// Whether the value must not match, or, without a condition on it, the cookie must be absent.
    pub invert: bool,
}

impl TextMatch {
    /// Returns a condition for exactly this text.
    pub fn exact(text: impl Into<String>) -> Self {
        Self { rule: TextRule::Exact(text.into()), ignore_case: false }
    }

    /// Returns whether the condition holds.
    pub fn matches(&self, text: &str) -> bool {
        let (has, ignore) = (text.as_bytes(), self.ignore_case);
        match &self.rule {
            TextRule::Exact(wanted) => same(has, wanted.as_bytes(), ignore),
            TextRule::Prefix(wanted) => begins(has, wanted.as_bytes(), ignore),
            TextRule::Suffix(wanted) => has
                .len()
                .checked_sub(wanted.len())
                .is_some_and(|at| same(&has[at..], wanted.as_bytes(), ignore)),
            TextRule::Contains(wanted) if ignore => {
                wanted.is_empty() || has.windows(wanted.len()).any(|part| same(part, wanted.as_bytes(), true))
            }
            TextRule::Contains(wanted) => text.contains(wanted),
            TextRule::Regex(expression) => expression.is_match(text),
        }
    }
}

impl PathRule {
    /// Returns the text of the rule; for regular expressions, the whole expression.
    pub fn text(&self) -> &str {
        match self {
            Self::Prefix(text) | Self::Segments(text) | Self::Exact(text) => text,
            Self::Regex(expression) => expression.as_str(),
        }
    }
}

impl PathMatch {
    /// Returns a condition that matches every path.
    pub fn any() -> Self {
        Self { rule: PathRule::Prefix(String::new()), ignore_case: false }
    }

    /// Returns a condition on the leading segments.
    pub fn segments(path: &str) -> Self {
        Self { rule: PathRule::Segments(path.trim_end_matches('/').to_owned()), ignore_case: false }
    }

    /// Returns whether the condition holds for this path, which has no query.
    pub fn matches(&self, path: &str) -> bool {
        let (has, ignore) = (path.as_bytes(), self.ignore_case);
        match &self.rule {
            PathRule::Prefix(wanted) => begins(has, wanted.as_bytes(), ignore),
            PathRule::Segments(wanted) => {
                begins(has, wanted.as_bytes(), ignore) && matches!(has.get(wanted.len()), None | Some(b'/'))
            }
            PathRule::Exact(wanted) => same(has, wanted.as_bytes(), ignore),
            PathRule::Regex(expression) => expression.is_match(path),
        }
    }

    /// Returns the length of the matched part of a path, which a prefix rewrite replaces; `None` for regular
    /// expressions.
    pub fn matched(&self) -> Option<usize> {
        match &self.rule {
            PathRule::Prefix(text) | PathRule::Segments(text) | PathRule::Exact(text) => Some(text.len()),
            PathRule::Regex(_) => None,
        }
    }
}

fn begins(text: &[u8], prefix: &[u8], ignore_case: bool) -> bool {
    text.get(..prefix.len()).is_some_and(|start| same(start, prefix, ignore_case))
}

fn same(one: &[u8], other: &[u8], ignore_case: bool) -> bool {
    if ignore_case { one.eq_ignore_ascii_case(other) } else { one == other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::whole;

    fn regex(expression: &str) -> Expression {
        whole(expression).expect("an expression")
    }

    #[test]
    fn texts() {
        use TextRule::{Contains, Exact, Prefix, Suffix};
        let rule = |rule, ignore_case| TextMatch { rule, ignore_case };
        for (condition, yes, no) in [
            (rule(Exact("a".into()), false), "a", "A"),
            (rule(Exact("a".into()), true), "A", "ab"),
            (rule(Prefix("ab".into()), false), "abc", "a"),
            (rule(Prefix("ab".into()), true), "ABc", "cab"),
            (rule(Suffix("bc".into()), false), "abc", "c"),
            (rule(Suffix("bc".into()), true), "aBC", "abcd"),
            (rule(Contains("b".into()), false), "abc", "aBc"),
            (rule(Contains("b".into()), true), "aBc", "ac"),
            (rule(TextRule::Regex(regex("a|bc")), false), "bc", "abc"),
            (rule(TextRule::Regex(regex("(?i)a+")), false), "AAA", "AAB"),
        ] {
            assert!(condition.matches(yes), "{condition:?} {yes}");
            assert!(!condition.matches(no), "{condition:?} {no}");
        }
        assert!(rule(Contains(String::new()), true).matches(""));
        assert!(rule(Suffix("é".into()), false).matches("café"), "an offset inside a character is handled");
    }

    #[test]
    fn paths() {
        let rule = |rule, ignore_case| PathMatch { rule, ignore_case };
        for (condition, yes, no) in [
            (PathMatch::any(), "/x", "never"),
            (rule(PathRule::Prefix("/a".into()), false), "/ab", "/A"),
            (rule(PathRule::Prefix("/a".into()), true), "/Ab", "/b"),
            (PathMatch::segments("/a/"), "/a", "/ab"),
            (PathMatch::segments("/a"), "/a/b", "/"),
            (rule(PathRule::Segments("/a".into()), true), "/A/b", "/Ab"),
            (rule(PathRule::Exact("/a".into()), false), "/a", "/a/"),
            (rule(PathRule::Exact("/a".into()), true), "/A", "/b"),
            (rule(PathRule::Regex(regex("/v[0-9]+/.*")), true), "/v2/x", "/x/v2/x"),
        ] {
            assert!(condition.matches(yes), "{condition:?} {yes}");
            assert!(no == "never" || !condition.matches(no), "{condition:?} {no}");
        }
    }

    #[test]
    fn a_whole_expression_has_no_way_out_of_its_frame() {
        assert!(whole("a)|(?:b").is_err());
        assert!(!regex("a|b").is_match("xb"));
        assert!(whole("(").is_err());
    }
}
