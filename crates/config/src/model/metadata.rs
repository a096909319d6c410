//! Conditions on what steps of a request's way have found out for those that come after them.

use super::TextMatch;

/// A condition on a value that one step has left under a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataMatch {
    /// The step, by the name of Envoy's filter.
    pub filter: String,
    /// The way to the value.
    pub path: Vec<String>,
    /// What the value must be.
    pub value: ValueMatch,
    /// The condition holds if the value is not like this.
    pub invert: bool,
}

/// What a value must be. None of these holds for a value that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueMatch {
    /// `null`.
    Null,
    /// This boolean.
    Bool(bool),
    /// A text like this.
    Text(TextMatch),
    /// There.
    Present,
    /// A list, of which one element is like this.
    OneOf(Box<ValueMatch>),
    /// Like one of these.
    Any(Vec<ValueMatch>),
}
