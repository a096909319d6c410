//! Conditions on paths.

use crate::{draft::Path, expression};

/// A condition on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTest {
    Exact(String),
    Begins(String),
    Ends(String),
    /// The whole path.
    Regex(String),
}

/// Returns the path that meets both conditions: `Some(None)` if no path does, `None` if it cannot be expressed.
pub(crate) fn both(one: &PathTest, other: &PathTest) -> Option<Option<PathTest>> {
    use PathTest::{Begins, Ends, Exact, Regex};
    match (one, other) {
        _ if one == other => Some(Some(one.clone())),
        (Exact(path), test) | (test, Exact(path)) => Some(test.holds(path).then(|| Exact(path.clone()))),
        (Begins(a), Begins(b)) if a.starts_with(b.as_str()) => Some(Some(Begins(a.clone()))),
        (Begins(a), Begins(b)) => Some(b.starts_with(a.as_str()).then(|| Begins(b.clone()))),
        (Begins(a), Ends(b)) | (Ends(b), Begins(a)) => {
            Some(Some(Regex(format!("{}.*{}", expression::literal(a), expression::literal(b)))))
        }
        _ => None,
    }
}

impl PathTest {
    /// Returns the condition of a route.
    pub(crate) fn to_path(&self) -> Path {
        match self {
            Self::Begins(text) if text == "/" => Path::Prefix(String::new()),
            Self::Exact(path) => Path::Exact(path.clone()),
            Self::Begins(text) => Path::Regex(format!("{}.*", expression::literal(text))),
            Self::Ends(text) => Path::Regex(format!(".*{}", expression::literal(text))),
            Self::Regex(expression) => Path::Regex(expression.clone()),
        }
    }

    fn holds(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => path == exact,
            Self::Begins(text) => path.starts_with(text.as_str()),
            Self::Ends(text) => path.ends_with(text.as_str()),
            Self::Regex(expression) => {
                regex::Regex::new(&format!("^(?:{expression})$")).is_ok_and(|regex| regex.is_match(path))
            }
        }
    }
}
