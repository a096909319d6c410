//! Origin and position of a setting, for messages.

use super::Position;
use std::{
    fmt,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The place of a setting: `quadrille.yaml:12 (listeners[0].address)`, or `--cert`.
///
/// All places are equal, so that parts of the model are compared by their values: a setting that has moved to another
/// line has not changed.
#[derive(Clone, Debug)]
pub struct Place {
    /// The origin.
    pub origin: Origin,
    /// The line, counted from one; `None` for the origin as a whole, or one without lines.
    pub line: Option<u64>,
    /// The column, counted from one; 0 if it is not known.
    pub column: u16,
    /// Path of the field, such as `listeners[0].address`; empty for the whole document.
    pub path: Arc<str>,
}

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A file, by its name as given.
    File(Arc<str>),
    /// Standard input, with the base directory of relative paths.
    Input(Arc<Path>),
    /// A resource of a control plane, such as `CDS` and the name of a cluster.
    Resource(&'static str, Arc<str>),
    /// A flag of the command line.
    Flag(Arc<str>),
    /// A default value.
    Default,
    /// The process or its machine, not its configuration.
    Process,
}

impl Origin {
    /// Returns the origin of a file, by its name as given.
    pub fn file(name: &str) -> Self {
        Self::File(name.into())
    }

    /// Returns the base directory of relative paths; empty if the origin is neither a file nor standard input.
    pub fn directory(&self) -> PathBuf {
        match self {
            Self::File(name) => Path::new(&**name).parent().map(Path::to_owned).unwrap_or_default(),
            Self::Input(base) => base.to_path_buf(),
            _ => PathBuf::new(),
        }
    }
}

impl Place {
    /// Returns the place of a whole origin.
    pub fn whole(origin: Origin) -> Self {
        Self { origin, line: None, column: 0, path: "".into() }
    }

    /// Returns the place of a command-line flag.
    pub fn flag(name: &str) -> Self {
        Self::whole(Origin::Flag(name.into()))
    }

    /// Returns the place of a default value.
    pub fn builtin() -> Self {
        Self::whole(Origin::Default)
    }

    /// Returns the place of a field; line 0 means no line.
    pub fn field(origin: &Origin, line: u64, path: &str) -> Self {
        Self { origin: origin.clone(), line: (line > 0).then_some(line), column: 0, path: path.into() }
    }

    /// Returns the place of a field at this position.
    pub fn at(origin: &Origin, position: Position, path: &str) -> Self {
        Self { column: position.column, ..Self::field(origin, position.line.into(), path) }
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
            Self::Input(_) => f.write_str("standard input"),
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
