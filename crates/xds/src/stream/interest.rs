//! Which resources of a type are subscribed to.

use std::collections::BTreeSet;

/// What is wanted of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// Nothing.
    #[default]
    Nothing,
    /// Whatever the server has for this node.
    Wildcard,
    /// These.
    Names(BTreeSet<String>),
}

impl Interest {
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Wildcard => false,
            Self::Names(names) => names.is_empty(),
        }
    }

    pub(super) fn includes(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Wildcard => true,
            Self::Names(names) => names.contains(name),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::Names(names) => Some(names),
            _ => None,
        }
        .into_iter()
        .flatten()
    }
}
