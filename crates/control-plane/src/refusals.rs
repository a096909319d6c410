//! Rejected resources, each kept until a valid version replaces it.

use quadrille_xds::{Outcome, Rejection, ResourceType, Update};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Maximum number of rejected resources kept; fewer are shown.
const MOST: usize = 1000;
const MOST_SHOWN: usize = 20;
/// Maximum length of a reason that is shown.
const LONGEST_SHOWN: usize = 500;

/// Resources whose last version was rejected.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<(ResourceType, String), Refusal>);

#[derive(Debug)]
struct Refusal {
    reason: String,
    outcome: Outcome,
}

impl Refusals {
    /// Records an update, of which `rejections` were rejected.
    pub(crate) fn note(&mut self, update: &Update, rejections: &[Rejection]) {
        let kind = update.kind;
        let refused = || update.unreadable.iter().chain(rejections);
        let still: BTreeSet<&str> = refused().map(|rejection| rejection.name.as_str()).collect();
        let sent: BTreeSet<&str> = update.resources.iter().map(|resource| resource.name.as_str()).collect();
        let gone = |name: &str| {
            sent.contains(name)
                || update.removed.iter().any(|removed| removed == name)
                || update.complete && kind.is_complete()
        };
        self.0.retain(|(of, name), _| *of != kind || still.contains(name.as_str()) || !gone(name));
        for Rejection { name, reason, outcome } in refused() {
            let key = (kind, name.clone());
            // There is nothing to keep after the active version was closed.
            let outcome = match self.0.get(&key) {
                Some(before) if *outcome == Outcome::Kept && before.outcome == Outcome::Closed => {
                    Outcome::Closed
                }
                _ => *outcome,
            };
            if self.0.len() < MOST || self.0.contains_key(&key) {
                self.0.insert(key, Refusal { reason: reason.clone(), outcome });
            }
        }
    }

    /// Returns the number of rejected resources of a type.
    pub(crate) fn count(&self, kind: ResourceType) -> usize {
        self.0.keys().filter(|(of, _)| *of == kind).count()
    }

    /// Returns whether an active resource was closed because of a rejection.
    pub(crate) fn close_something(&self) -> bool {
        self.0.values().any(|refusal| refusal.outcome == Outcome::Closed)
    }

    /// Formats the rejected resources, one per line, up to `MOST_SHOWN`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for ((kind, name), Refusal { reason, outcome }) in self.0.iter().take(MOST_SHOWN) {
            let outcome = match outcome {
                Outcome::Closed => "closed",
                Outcome::Kept => "the previous version stays",
                Outcome::Partial => "in service, with closed routes",
            };
            let shown: String = reason.chars().take(LONGEST_SHOWN).map(plain).collect();
            let name: String = name.chars().map(plain).collect();
            let _ = writeln!(text, "refused: {kind} {name} ({outcome}): {shown}");
        }
        if self.0.len() > MOST_SHOWN {
            let _ = writeln!(text, "refused: {} more", self.0.len() - MOST_SHOWN);
        }
        text
    }
}

/// Replaces control characters, so that each entry stays on one line.
fn plain(letter: char) -> char {
    if letter.is_control() { ' ' } else { letter }
}
