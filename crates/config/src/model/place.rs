//! Where a setting comes from, for messages that a user can act on.

use std::{
    fmt,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where a setting was written: `quadrille.yaml:12 (listeners[0].address)`, or `--cert`.
///
/// All places are equal, so that parts of the model are compared by what they say: a setting that has moved to another
/// line has not changed.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it was read from.
    pub origin: Origin,
    /// Counted from one; `None` if the origin as a whole is meant, or has no lines.
    pub line: Option<u64>,
    /// Path of the field, such as `listeners[0].address`; empty for the whole document.
    pub path: Arc<str>,
}

/// What a setting was read from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A file, as it was named.
    File(Arc<str>),
    /// A resource of a control plane, such as `CDS` and the name of a cluster.
    Resource(&'static str, Arc<str>),
    /// A flag of the command line.
    Flag(Arc<str>),
    /// Nothing: the value that holds when nothing is said.
    Default,
    /// This process or its machine, not its configuration.
    Process,
}

impl Origin {
    /// A file, as it was named.
    pub fn file(name: &str) -> Self {
        Self::File(name.into())
    }

    /// Where relative paths in it start; empty for what is no file.
    pub fn directory(&self) -> PathBuf {
        match self {
            Self::File(name) => Path::new(&**name).parent().map(Path::to_owned).unwrap_or_default(),
            _ => PathBuf::new(),
        }
    }
}

impl Place {
    /// All of an origin.
    pub fn whole(origin: Origin) -> Self {
        Self { origin, line: None, path: "".into() }
    }

    /// A command-line flag.
    pub fn flag(name: &str) -> Self {
        Self::whole(Origin::Flag(name.into()))
    }

    /// Nowhere: the value that holds when nothing is said.
    pub fn builtin() -> Self {
        Self::whole(Origin::Default)
    }

    /// A field of an origin; line 0 stands for none.
    pub fn field(origin: &Origin, line: u64, path: &str) -> Self {
        Self { origin: origin.clone(), line: (line > 0).then_some(line), path: path.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, " ({})", self.path) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) | Self::Flag(name) => f.write_str(name),
            Self::Resource(service, name) => write!(f, "{service} `{name}`"),
            Self::Default => f.write_str("default"),
            Self::Process => f.write_str("this process"),
        }
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
