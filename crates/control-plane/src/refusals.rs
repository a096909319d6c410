//! What control planes have sent in vain, until something that can be served takes its place.

use quadrille_xds::{Rejection, ResourceType, Update};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// So many are kept, and fewer are shown.
const MOST: usize = 1000;
const MOST_SHOWN: usize = 20;
/// Bytes of a reason that are shown.
const LONGEST_SHOWN: usize = 500;

/// The resources whose last version was refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<(ResourceType, String), Refusal>);

#[derive(Debug)]
struct Refusal {
    reason: String,
    /// What was in service under its name was closed.
    closed: bool,
}

impl Refusals {
    /// Takes note of an update, of which `rejections` were refused.
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
        for Rejection { name, reason, closed } in refused() {
            let key = (kind, name.clone());
            let closed = *closed || self.0.get(&key).is_some_and(|before| before.closed);
            if self.0.len() < MOST || self.0.contains_key(&key) {
                self.0.insert(key, Refusal { reason: reason.clone(), closed });
            }
        }
    }

    /// How many of one kind there are.
    pub(crate) fn count(&self, kind: ResourceType) -> usize {
        self.0.keys().filter(|(of, _)| *of == kind).count()
    }

    /// Whether something is closed for one of them.
    pub(crate) fn close_something(&self) -> bool {
        self.0.values().any(|refusal| refusal.closed)
    }

    /// A line for each, as far as they are shown.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for ((kind, name), Refusal { reason, closed }) in self.0.iter().take(MOST_SHOWN) {
            let outcome = if *closed { "closed" } else { "the one before stays" };
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

/// A line stays one.
fn plain(letter: char) -> char {
    if letter.is_control() { ' ' } else { letter }
}
