//! A mistake in a setting, with its remedy, independent of the place.

use std::fmt;

/// A mistake in a setting. Never contains key material.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The problem.
    pub message: String,
    /// The remedy, if known.
    pub remedy: Option<String>,
}

impl Problem {
    /// Makes a problem with a remedy.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()) }
    }
}

/// Makes a problem without a remedy.
impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, remedy: None }
    }
}

/// Makes a problem without a remedy.
impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// Makes a problem from a constant message and remedy.
impl From<[&str; 2]> for Problem {
    fn from([message, remedy]: [&str; 2]) -> Self {
        Self::new(message, remedy)
    }
}

/// Writes the message and the remedy, separated by a semicolon.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Problem {}
