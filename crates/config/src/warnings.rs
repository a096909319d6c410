//! Warnings about a configuration that is valid nevertheless.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of known kinds, which may contain names from untrusted sources.
const MOST_KNOWN: usize = 1000;

/// Warnings, one for each kind: a thousand listeners with the same ignored field are one line.
#[derive(Clone, Debug, Default)]
pub struct Warnings(BTreeMap<String, (String, usize)>);

impl Warnings {
    /// Adds one; its text is made only if it is the first of its kind.
    pub fn add(&mut self, kind: &str, text: impl FnOnce() -> String) {
        match self.0.get_mut(kind) {
            Some((_, count)) => *count += 1,
            None => _ = self.0.insert(kind.to_owned(), (text(), 1)),
        }
    }

    /// Adds the warnings of another reading.
    pub fn extend(&mut self, other: Self) {
        for (kind, (text, count)) in other.0 {
            self.0.entry(kind).or_insert((text, 0)).1 += count;
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

    /// Returns one line for each kind.
    pub fn lines(&self) -> Vec<String> {
        let line = |(text, count): &(String, usize)| match count - 1 {
            0 => text.clone(),
            1 => format!("{text} (and in 1 other place)"),
            others => format!("{text} (and in {others} other places)"),
        };
        self.0.values().map(line).collect()
    }
}
