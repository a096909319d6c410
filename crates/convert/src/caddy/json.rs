//! Caddy's JSON, with the path of each value.

use crate::ledger::{Ledger, Place, StatementId};
use serde_json::Value;
use std::sync::Arc;

/// A value with its path, such as `apps.http.servers.srv0`.
#[derive(Clone, Copy)]
pub(super) struct Json<'a> {
    pub(super) value: &'a Value,
}

/// Notes values as statements.
pub(super) struct Notes<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) file: &'a Arc<str>,
}

impl<'a> Json<'a> {
    /// Returns the value under these keys; null if it does not exist.
    pub(super) fn at(self, keys: &[&str]) -> Self {
        static NULL: Value = Value::Null;
        let found = keys.iter().try_fold(self.value, |value, key| value.get(key));
        Self { value: found.unwrap_or(&NULL) }
    }

    pub(super) fn items(self) -> impl DoubleEndedIterator<Item = Json<'a>> {
        self.value.as_array().into_iter().flatten().map(|value| Json { value })
    }

    pub(super) fn entries(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        self.value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), Json { value }))
    }

    pub(super) fn text(self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn texts(self) -> Vec<String> {
        self.items().map(|item| item.text().to_owned()).collect()
    }

    pub(super) fn is_missing(self) -> bool {
        self.value.is_null()
    }

    /// Returns the text of a number or a text.
    pub(super) fn number(self) -> Option<u64> {
        self.value.as_u64().or_else(|| self.text().parse().ok())
    }

    /// Returns a time in nanoseconds, or as text, as a duration.
    pub(super) fn duration(self) -> Option<String> {
        match self.value.as_u64() {
            Some(nanoseconds) => crate::values::shown((nanoseconds / 1_000_000).max(1)),
            None => crate::values::duration(self.text()),
        }
    }
}

impl Notes<'_> {
    /// Adds a statement.
    pub(super) fn add(&self, text: &str) -> StatementId {
        self.ledger.add(Place { file: Arc::clone(self.file), line: 0 }, text)
    }

    /// Adds a statement that is converted.
    pub(super) fn converted(&self, text: &str) {
        self.ledger.converted(self.add(text));
    }

    /// Adds a statement that is not converted, and returns its text for comments.
    pub(super) fn refused(&self, text: &str, remedy: impl Into<String>) -> String {
        let id = self.add(text);
        self.ledger.refused(id, remedy);
        self.ledger.shown(id)
    }

    pub(super) fn differs(&self, text: &str, difference: &str) {
        self.ledger.differs(self.add(text), difference);
    }
}
