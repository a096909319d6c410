//! Subscriptions to resources of a type.

use std::collections::BTreeSet;

/// Subscription to resources of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// No resources.
    #[default]
    Nothing,
    /// All resources that the control plane has for this node.
    Wildcard,
    /// The named resources.
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
