//! Outcome of each statement of the source: converted, converted with a difference, or not.

use std::{cell::RefCell, fmt, sync::Arc};

/// Place of a statement in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, by its name as given.
    pub file: Arc<str>,
    /// The line, counted from one; 0 if it is not known, as in JSON.
    pub line: usize,
}

/// A statement, by its number in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementId(usize);

/// A statement that is not converted, or with a difference.
#[derive(Clone, Debug)]
pub struct Remark {
    /// The place.
    pub place: Place,
    /// The text, shortened.
    pub statement: String,
    /// The difference, or the remedy.
    pub text: String,
}

/// Statements of a source with their outcomes. A statement that is used several times has its worst outcome.
#[derive(Debug, Default)]
pub struct Ledger(RefCell<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    place: Place,
    statement: String,
    outcome: Outcome,
}

/// Outcome of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// No part of a converter has read it.
    Unread,
    /// Has an equivalent, or needs no equivalent.
    Converted,
    /// Has an equivalent that differs in this.
    Differs(String),
    /// Has no equivalent; the text is the remedy.
    Refused(String),
}

impl Ledger {
    /// Adds a statement.
    pub fn add(&self, place: Place, statement: &str) -> StatementId {
        let mut entries = self.0.borrow_mut();
        entries.push(Entry { place, statement: shortened(statement), outcome: Outcome::Unread });
        StatementId(entries.len() - 1)
    }

    /// Notes that the statement has an equivalent, or needs none.
    pub fn converted(&self, id: StatementId) {
        self.worsen(id, Outcome::Converted);
    }

    /// Notes that the statement has an equivalent that differs.
    pub fn differs(&self, id: StatementId, difference: impl Into<String>) {
        self.worsen(id, Outcome::Differs(difference.into()));
    }

    /// Notes that the statement has no equivalent.
    pub fn refused(&self, id: StatementId, remedy: impl Into<String>) {
        self.worsen(id, Outcome::Refused(remedy.into()));
    }

    /// Returns the place of a statement and its text, for comments.
    pub fn shown(&self, id: StatementId) -> String {
        let entries = self.0.borrow();
        format!("{} ({})", entries[id.0].place, entries[id.0].statement)
    }

    /// Returns the outcome of a statement.
    pub fn outcome(&self, id: StatementId) -> Outcome {
        self.0.borrow()[id.0].outcome.clone()
    }

    /// Returns the place of a statement.
    pub fn place(&self, id: StatementId) -> Place {
        self.0.borrow()[id.0].place.clone()
    }

    /// Returns the number of statements.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns whether it has no statements.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns the statements that are not converted. One that no part of a converter has read counts as such.
    pub fn not_converted(&self) -> Vec<Remark> {
        self.remarks(|outcome| match outcome {
            Outcome::Refused(remedy) => Some(remedy.clone()),
            Outcome::Unread => Some(UNREAD.to_owned()),
            Outcome::Converted | Outcome::Differs(_) => None,
        })
    }

    /// Returns the statements that are converted with a difference.
    pub fn differing(&self) -> Vec<Remark> {
        self.remarks(|outcome| match outcome {
            Outcome::Differs(difference) => Some(difference.clone()),
            _ => None,
        })
    }

    fn remarks(&self, text: impl Fn(&Outcome) -> Option<String>) -> Vec<Remark> {
        let entries = self.0.borrow();
        let remark = |entry: &Entry| {
            let Entry { place, statement, outcome } = entry;
            Some(Remark { place: place.clone(), statement: statement.clone(), text: text(outcome)? })
        };
        entries.iter().filter_map(remark).collect()
    }

    fn worsen(&self, StatementId(at): StatementId, outcome: Outcome) {
        let entry = &mut self.0.borrow_mut()[at];
        let rank = |outcome: &Outcome| match outcome {
            Outcome::Unread => 0,
            Outcome::Converted => 1,
            Outcome::Differs(_) => 2,
            Outcome::Refused(_) => 3,
        };
        if rank(&outcome) > rank(&entry.outcome) {
            entry.outcome = outcome;
        }
    }
}

/// Remedy of statements that no converter knows in their place.
pub const UNREAD: &str = "has no effect here, or is not known: check whether it is needed";

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.statement, self.text)
    }
}

fn shortened(statement: &str) -> String {
    const MOST: usize = 60;
    let words: Vec<_> = statement.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}
