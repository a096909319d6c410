//! Outcomes of the settings of objects.

use crate::object::Meta;
use quadrille_draft::ledger::{Ledger, Place, StatementId};
use std::cell::RefCell;

/// Outcomes of settings, by object.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) ledger: Ledger,
    noted: RefCell<Vec<Noted>>,
}

/// An object with its settings.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) object: String,
    pub(crate) place: Place,
    /// Names of settings, with their statements.
    pub(crate) entries: Vec<(String, StatementId)>,
}

impl Notes {
    /// Adds a setting of an object, on this line.
    pub(crate) fn add(&self, meta: &Meta, setting: &str, line: usize) -> StatementId {
        let place = Place { line, ..meta.place.clone() };
        let object = meta.to_string();
        let id = self.ledger.add(place, &format!("{object}: {setting}"));
        let mut noted = self.noted.borrow_mut();
        match noted.iter_mut().rev().find(|one| one.object == object && one.place == meta.place) {
            Some(one) => one.entries.push((setting.to_owned(), id)),
            None => {
                let entries = vec![(setting.to_owned(), id)];
                noted.push(Noted { object, place: meta.place.clone(), entries });
            }
        }
        id
    }

    /// Returns the statement of a setting, which is added if it is new.
    pub(crate) fn of(&self, meta: &Meta, setting: &str) -> StatementId {
        let object = meta.to_string();
        let known = self
            .noted
            .borrow()
            .iter()
            .find(|one| one.object == object)
            .and_then(|one| one.entries.iter().find(|(known, _)| known == setting).map(|(_, id)| *id));
        known.unwrap_or_else(|| self.add(meta, setting, meta.place.line))
    }

    /// Returns the outcomes, and the objects with their settings in the order of their first setting.
    pub(crate) fn into_parts(self) -> (Ledger, Vec<Noted>) {
        (self.ledger, self.noted.into_inner())
    }
}
