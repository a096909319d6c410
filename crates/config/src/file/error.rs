//! What is wrong with a configuration, all of it at once.

use std::{fmt, sync::Arc};

/// One mistake: `quadrille.yaml:7: listeners[0].certificats: unknown key; did you mean ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as it was named.
    pub file: Arc<str>,
    /// Counted from one; `None` if the file as a whole is meant.
    pub line: Option<u64>,
    /// Path of the field, such as `listeners[0].address`; empty for the whole document.
    pub field: String,
    /// What is wrong, and what to do about it. Never holds key material.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Every mistake that could be found in one reading, by line; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// These mistakes, of which there must be one.
    pub fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| error.line);
        Self(errors)
    }

    /// A mistake of the file as a whole.
    pub fn whole_file(file: &str, message: String) -> Self {
        Self(vec![ConfigError { file: file.into(), line: None, field: String::new(), message }])
    }

    /// A line of the file that cannot be read.
    pub fn at_line(file: &str, line: u64, message: String) -> Self {
        Self(vec![ConfigError { file: file.into(), line: Some(line), field: String::new(), message }])
    }

    /// The mistakes, by line.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ConfigError> {
        self.0.iter()
    }
}

/// One mistake a line.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
