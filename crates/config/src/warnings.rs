//! Warnings about a configuration that is valid nevertheless.

use crate::{Diagnostic, Problem, model::Place};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of known kinds, which may contain names from untrusted sources.
const MOST_KNOWN: usize = 1000;

/// Warnings, one for each kind: a thousand listeners with the same ignored field are one line.
#[derive(Clone, Debug, Default)]
pub struct Warnings(BTreeMap<String, (Warning, usize)>);

/// A warning, with its place if it has one.
#[derive(Clone, Debug)]
struct Warning {
    place: Option<Place>,
    problem: Problem,
}

impl Warnings {
    /// Adds one without a place; its text is made only if it is the first of its kind.
    pub fn add(&mut self, kind: &str, text: impl FnOnce() -> String) {
        self.add_one(kind, || Warning { place: None, problem: text().into() });
    }

    /// Adds one for this place.
    pub(crate) fn add_at(&mut self, kind: &str, place: Place, problem: Problem) {
        self.add_one(kind, || Warning { place: Some(place), problem });
    }

    fn add_one(&mut self, kind: &str, warning: impl FnOnce() -> Warning) {
        match self.0.get_mut(kind) {
            Some((_, count)) => *count += 1,
            None => _ = self.0.insert(kind.to_owned(), (warning(), 1)),
        }
    }

    /// Adds the warnings of another reading.
    pub fn extend(&mut self, other: Self) {
        for (kind, (warning, count)) in other.0 {
            self.0.entry(kind).or_insert((warning, 0)).1 += count;
        }
    }

    /// Returns the warnings of kinds that are not in `known`, and adds these kinds to it: repeated warnings are
    /// reported once.
    #[must_use]
    pub fn unless_known(self, known: &mut BTreeSet<String>) -> Self {
        let new = self.0.into_iter().filter(|(kind, _)| {
            let is_new = !known.contains(kind);
            if is_new && known.len() < MOST_KNOWN {
                known.insert(kind.clone());
            }
            is_new
        });
        Self(new.collect())
    }

    /// Returns the first warning of each kind that has a place.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let all = self.0.into_values();
        all.filter_map(|(Warning { place, problem }, _)| Some(Diagnostic::new(&place?, problem))).collect()
    }

    /// Returns one line for each kind.
    pub fn lines(&self) -> Vec<String> {
        let line = |(Warning { place, problem }, count): &(Warning, usize)| {
            let place = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            match count - 1 {
                0 => format!("{place}{problem}"),
                1 => format!("{place}{problem} (and in 1 other place)"),
                others => format!("{place}{problem} (and in {others} other places)"),
            }
        };
        self.0.values().map(line).collect()
    }
}
