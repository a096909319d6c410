//! Errors, by cause.

use std::{fmt, io, path::PathBuf};

/// Reason for which a field could not be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The envelope does not belong to this field and row under a usable key. No details are given: they would help
    /// an attacker that tries envelopes.
    #[error("the field cannot be decrypted")]
    Unreadable,
    /// A table or column name is empty or longer than 255 bytes.
    #[error("table and column must be 1 to 255 bytes long")]
    Name,
    /// The row identifier is empty or longer than 255 bytes.
    #[error("the row must be identified by 1 to 255 bytes, for instance by its primary key")]
    Row,
    /// Unsupported length of a blind index.
    #[error("a blind index has 8 to 256 bits, a multiple of 8")]
    Bits,
    /// Wrong length of a key of the legacy format.
    #[error("the data key and the vector key of the legacy format must be 32 bytes long each")]
    LegacyKey,
    /// Wrong length of an mcrypt key or initialisation vector.
    #[error("an mcrypt key has 1 to 32 bytes, an initialisation vector 16, 24 or 32, like a block")]
    Mcrypt,
    /// No random numbers from the system.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Reason for which a key ring cannot be read or changed.
#[derive(Debug)]
pub struct KeyRingError {
    /// Path of the file, if the ring was read from one.
    pub path: Option<PathBuf>,
    /// Line number, counted from 1.
    pub line: Option<usize>,
    /// Description and remedy. It never contains key material.
    pub what: String,
    /// Error of the system.
    pub source: Option<io::Error>,
}

impl KeyRingError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { path: None, line: None, what: what.into(), source: None }
    }

    pub(crate) fn in_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    pub(crate) fn of_file(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    pub(crate) fn because(self, source: io::Error) -> Self {
        Self { source: Some(source), ..self }
    }
}

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}", path.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        } else if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.what)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for KeyRingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
