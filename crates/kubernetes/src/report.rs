//! Report of a translation: what works, works differently or does not work, by object.

use crate::{notes::Noted, object::Objects};
use quadrille_draft::ledger::{Ledger, Outcome, Place, UNREAD};
use std::fmt;

/// Report of a translation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Objects with settings, in the order of the input.
    pub objects: Vec<ObjectReport>,
    /// Number of Ingress objects that are translated.
    pub translated: usize,
    /// Number of Ingress objects in the input.
    pub ingresses: usize,
    /// Kinds of objects that are not read, each once.
    pub unread: Vec<String>,
}

/// Report of an object.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    /// Kind, namespace and name.
    pub object: String,
    /// Place in the input.
    pub place: Place,
    /// Settings of the object.
    pub entries: Vec<Entry>,
}

/// Outcome of a setting.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the annotation, or the part of the object.
    pub setting: String,
    /// The line in the input; 0 if it is unknown.
    pub line: usize,
    /// The outcome.
    pub state: State,
    /// The difference, or the remedy; empty if it works.
    pub text: String,
}

/// Outcome of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Works as with ingress-nginx.
    Works,
    /// Works differently.
    Differs,
    /// Does not work.
    Refused,
}

impl Report {
    pub(crate) fn new(
        ledger: &Ledger,
        noted: &[Noted],
        (translated, ingresses): (usize, usize),
        objects: &Objects,
    ) -> Self {
        let of_object = |one: &Noted| {
            let entry = |(setting, id): &(String, _)| {
                let (state, text) = match ledger.outcome(*id) {
                    Outcome::Converted => (State::Works, String::new()),
                    Outcome::Differs(text) => (State::Differs, text),
                    Outcome::Refused(text) => (State::Refused, text),
                    Outcome::Unread => (State::Refused, UNREAD.to_owned()),
                };
                Entry { setting: setting.clone(), line: ledger.place(*id).line, state, text }
            };
            let entries = one.entries.iter().map(entry).collect();
            ObjectReport { object: one.object.clone(), place: one.place.clone(), entries }
        };
        let mut unread = objects.others.clone();
        unread.sort();
        unread.dedup();
        Self { objects: noted.iter().map(of_object).collect(), translated, ingresses, unread }
    }

    /// Adds routes that are closed because the configuration's reader does not accept them.
    pub(crate) fn add_closed(&mut self, routes: Vec<String>) {
        if routes.is_empty() {
            return;
        }
        let text = "not a valid route: a name or a value of its annotations has characters that cannot be used; it responds with 503";
        let entry = |setting| Entry { setting, line: 0, state: State::Refused, text: text.to_owned() };
        let place = Place { file: "configuration".into(), line: 0 };
        let entries = routes.into_iter().map(entry).collect();
        self.objects.push(ObjectReport { object: "Routes".to_owned(), place, entries });
    }

    /// Returns the number of settings with this outcome.
    pub fn count(&self, state: State) -> usize {
        self.objects.iter().flat_map(|one| &one.entries).filter(|entry| entry.state == state).count()
    }

    /// Returns whether a setting does not work.
    pub fn has_refused(&self) -> bool {
        self.count(State::Refused) > 0
    }
}

impl State {
    /// Returns the words for it in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Differs => "works differently",
            Self::Refused => "does not work",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.objects {
            writeln!(f, "{} ({})", one.object, one.place)?;
            for Entry { setting, line, state, text } in &one.entries {
                let line = if *line > 0 { format!("line {line}: ") } else { String::new() };
                let text =
                    if text.is_empty() { String::new() } else { format!(": {}", text.replace('\n', " ")) };
                writeln!(f, "  {line}{}: {setting}{text}", state.words())?;
            }
        }
        if !self.unread.is_empty() {
            writeln!(f, "not read: objects of kind {}", self.unread.join(", "))?;
        }
        let count = |state| self.count(state);
        writeln!(
            f,
            "{} of {} Ingress objects translated; settings: {} work, {} work differently, {} do not work",
            self.translated,
            self.ingresses,
            count(State::Works),
            count(State::Differs),
            count(State::Refused)
        )
    }
}
