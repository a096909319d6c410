//! Data in a file, or inline in the configuration.

use std::{
    fmt,
    hash::{Hash, Hasher},
    io,
    path::PathBuf,
    sync::Arc,
};
use zeroize::Zeroizing;

/// Bytes in a file, or inline.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, which is read on start and on every reload, and watched.
    File(PathBuf),
    /// Inline bytes in the configuration; zeroized when the last copy is dropped.
    Inline(Arc<Zeroizing<Vec<u8>>>),
}

impl Source {
    /// Makes a source of inline bytes.
    pub fn inline(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Inline(Arc::new(Zeroizing::new(bytes.into())))
    }

    /// Reads the current bytes.
    pub fn read(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        match self {
            Self::File(path) => std::fs::read(path).map(Zeroizing::new),
            Self::Inline(bytes) => Ok(Zeroizing::clone(bytes)),
        }
    }

    /// Returns the file to watch, if there is one.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }
}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::File(path) => path.hash(state),
            Self::Inline(bytes) => bytes.as_slice().hash(state),
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
