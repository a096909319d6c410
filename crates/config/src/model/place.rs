//! Where a setting comes from, for error messages that a user can act on.

use std::{fmt, io, path::PathBuf, sync::Arc};
use zeroize::Zeroizing;

/// Where a setting was written: `quadrille.yaml:12 (listeners[0].address)`, or `--cert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Arc<str>);

impl Place {
    /// A command-line flag.
    pub fn flag(name: &str) -> Self {
        Self(name.into())
    }

    /// Nowhere: the value that holds when nothing is said.
    pub fn builtin() -> Self {
        Self("default".into())
    }

    /// A field of something that has no lines.
    pub fn field(origin: &str, field: &str) -> Self {
        Self(format!("{origin} ({field})").into())
    }

    /// A line of a configuration file, with the path of the field.
    pub fn line(file: &str, line: u64, field: &str) -> Self {
        Self(format!("{file}:{line} ({field})").into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes named by a file, or given in place.
#[derive(Clone)]
pub enum Source {
    /// Read on start and on every reload; the file is watched.
    File(PathBuf),
    /// Given in the configuration itself; wiped when the last copy goes.
    Inline(Arc<Zeroizing<Vec<u8>>>),
}

impl Source {
    /// Bytes given in place.
    pub fn inline(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Inline(Arc::new(Zeroizing::new(bytes.into())))
    }

    /// The bytes as they are now.
    pub fn read(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        match self {
            Self::File(path) => std::fs::read(path).map(Zeroizing::new),
            Self::Inline(bytes) => Ok(Zeroizing::clone(bytes)),
        }
    }

    /// The file to watch, if there is one.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }
}

/// Never shows the bytes: they may be a private key.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Inline(_) => f.write_str("(inline)"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
