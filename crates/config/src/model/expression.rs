//! Regular expressions that can be compared.

use regex::{Regex, RegexBuilder};
use std::{
    hash::{Hash, Hasher},
    ops::Deref,
};

/// A regular expression of the crate `regex`. Two are equal if they are written the same.
#[derive(Clone, Debug)]
pub struct Expression(Regex);

/// The expression for a text that matches as a whole.
///
/// # Errors
/// If it is no regular expression of the crate `regex` (as RE2: no look-around, no back references), or a huge one.
pub fn whole(expression: &str) -> Result<Expression, regex::Error> {
    whole_within(expression, usize::MAX)
}

/// The same in no more than so many bytes, and in no more than the crate allows everybody.
///
/// # Errors
/// As [`whole`].
pub fn whole_within(expression: &str, bytes: usize) -> Result<Expression, regex::Error> {
    // Checked alone first: the frame must not make sense of something unbalanced.
    compiled(expression, bytes)?;
    compiled(&format!(r"\A(?:{expression})\z"), bytes)
}

/// An expression for a text that matches somewhere, in no more than so many bytes.
///
/// # Errors
/// As [`whole`].
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
