//! Regular expressions that can be compared.

use regex::{Regex, RegexBuilder};
use std::{
    hash::{Hash, Hasher},
    ops::Deref,
};

/// A regular expression of the crate `regex`. Two are equal if their texts are equal.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

/// Returns an expression that must match a whole text.
///
/// # Errors
/// If it is not a regular expression of the crate `regex` (as in RE2: no look-around, no back references), or too
/// large.
pub fn whole(expression: &str) -> Result<Expression, regex::Error> {
    whole_within(expression, usize::MAX)
}

/// Like [`whole`], with a maximum size in bytes, and at most the crate's own maximum.
///
/// # Errors
/// Like [`whole`].
pub fn whole_within(expression: &str, bytes: usize) -> Result<Expression, regex::Error> {
    // The expression is compiled alone first: the anchors must not make an unbalanced expression valid.
    compiled(expression, bytes)?;
    compiled(&format!(r"\A(?:{expression})\z"), bytes)
}

/// Returns an expression that may match any part of a text, with a maximum size in bytes.
///
/// # Errors
/// Like [`whole`].
pub fn compiled(expression: &str, bytes: usize) -> Result<Expression, regex::Error> {
    const LARGEST: usize = 10 << 20;
    RegexBuilder::new(expression).size_limit(bytes.min(LARGEST)).build().map(Expression)
}

impl From<Regex> for Expression {
    fn from(regex: Regex) -> Self {
        Self(regex)
    }
}

impl Deref for Expression {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
