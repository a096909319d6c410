//! The shape of the file as data: which keys a section knows, and what each does and costs.
//!
//! Reading refuses what is not here, suggestions come from here, and `docs/reference/configuration.md` is made
//! from here.

use crate::text::nearest;

/// A mapping with fixed keys.
#[derive(Debug)]
pub(super) struct Section {
    /// Where it stands, such as `listeners[].tls`; empty for the whole document.
    pub(super) path: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// The keys it knows.
    pub(super) keys: &'static [Key],
}

/// One key of a section.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What may be written, with the unit.
    pub(super) value: &'static str,
    pub(super) preset: Preset,
    /// What it does and what it costs.
    pub(super) about: &'static str,
}

/// What holds if the key is left out.
#[derive(Debug)]
pub(super) enum Preset {
    /// The key cannot be left out.
    Required,
    /// The same as this value written out.
    Is(&'static str),
    /// Something that cannot be written as a value.
    Means(&'static str),
}

impl Section {
    pub(super) fn knows(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// The known key that `name` was probably meant to be.
    pub(super) fn nearest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.keys.iter().map(|key| key.name))
    }
}
