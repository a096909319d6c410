//! What is wrong with a setting, and what to do about it, wherever it was written.

use std::fmt;

/// What is wrong with a text that should have been a setting. Never holds key material.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that is known.
    pub remedy: Option<String>,
}

impl Problem {
    /// Something wrong that can be put right like this.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()) }
    }
}

/// Without a remedy.
impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { message, remedy: None }
    }
}

/// Without a remedy.
impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// What is wrong, and the remedy: a problem as a constant.
impl From<[&str; 2]> for Problem {
    fn from([message, remedy]: [&str; 2]) -> Self {
        Self::new(message, remedy)
    }
}

/// As people read it: what is wrong; what to do.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Problem {}
