//! What can go wrong, and whose fault it is.

use std::{fmt, io, path::PathBuf};

/// Why a field could not be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The envelope is not one of this field and row under a key that may be used. It says nothing about why: that
    /// would help whoever tries envelopes.
    #[error("the field cannot be decrypted")]
    Unreadable,
    /// A table or column name is empty or longer than 255 bytes.
    #[error("table and column must be 1 to 255 bytes long")]
    Name,
    /// A row's name is empty or longer than 255 bytes.
    #[error(
        "the row that the field belongs to must be named by 1 to 255 bytes, for instance by its primary key"
    )]
    Row,
    /// A blind index of a length that does not exist.
    #[error("a blind index has 8 to 256 bits, a multiple of 8")]
    Bits,
    /// A key of the older form has the wrong length.
    #[error("the data key and the vector key of the older form must be 32 bytes long each")]
    LegacyKey,
    /// A key or an initialisation vector of mcrypt has the wrong length.
    #[error(
        "a key of mcrypt has 1 to 32 bytes, and an initialisation vector as many as a block: 16, 24 or 32"
    )]
    Mcrypt,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Why a key ring cannot be read or changed.
#[derive(Debug)]
pub struct KeyRingError {
    /// The file, if it came from one.
    pub path: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// What is wrong, and what mends it. It never holds anything of a key.
    pub what: String,
    /// What the system said.
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
