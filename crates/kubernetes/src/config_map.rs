//! ConfigMap of ingress-nginx: defaults of annotations, and settings of all hosts.

mod keys;

use crate::{
    notes::Notes,
    object::{ConfigMap, Objects},
    options::Options,
};
use keys::Meaning;
use quadrille_draft::ledger::StatementId;
use std::cell::RefCell;

/// Names under which the ConfigMap is found if none is given.
const NAMES: [&str; 3] = ["ingress-nginx-controller", "ingress-nginx", "nginx-configuration"];

/// Settings of the ConfigMap.
#[derive(Debug)]
pub(crate) struct Globals<'o> {
    map: Option<&'o ConfigMap>,
    ids: RefCell<Vec<(String, StatementId)>>,
}

impl<'o> Globals<'o> {
    /// Finds the ConfigMap, and notes its keys.
    pub(crate) fn find(objects: &'o Objects, options: &Options, notes: &Notes) -> Self {
        let map = match options.config_map.as_deref().map(|name| name.split_once('/').unwrap_or(("", name))) {
            Some((namespace, name)) => objects.config_maps.iter().find(|map| {
                map.meta.name == name && (namespace.is_empty() || map.meta.namespace == namespace)
            }),
            None => {
                NAMES.iter().find_map(|name| objects.config_maps.iter().find(|map| map.meta.name == **name))
            }
        };
        let globals = Self { map, ids: RefCell::default() };
        globals.note(notes);
        globals
    }

    /// Adds all keys to the ledger; those whose meaning does not depend on their value are judged.
    fn note(&self, notes: &Notes) {
        let Some(map) = self.map else { return };
        for ((key, value), line) in map.data.iter().zip(&map.lines) {
            let id = notes.add(&map.meta, key, *line);
            self.ids.borrow_mut().push((key.clone(), id));
            match keys::meaning(key) {
                Meaning::Used => notes.ledger.converted(id),
                Meaning::Default(default) if value == default => notes.ledger.converted(id),
                Meaning::Differs(text) => notes.ledger.differs(id, text),
                Meaning::Default(_) | Meaning::Refused => {
                    notes.ledger.refused(id, "has no equivalent: check whether it is needed");
                }
                Meaning::Guard => notes.ledger.refused(
                    id,
                    "has no equivalent, and restricts access: express it by `rules` of the listeners",
                ),
            }
        }
        for key in
            ["enable-modsecurity", "http-snippet", "server-snippet", "location-snippet", "main-snippet"]
        {
            if self.get(key).is_some_and(|value| value != "false" && !value.is_empty()) {
                self.refuse(notes, key, "has no equivalent: see the snippets' rows in the reference");
            }
        }
    }

    /// Returns a value; empty ones count as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'o str> {
        self.map?.get(key).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns a boolean, with its default.
    pub(crate) fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    /// Returns the statement of a key.
    pub(crate) fn id(&self, key: &str) -> Option<StatementId> {
        self.ids.borrow().iter().find(|(known, _)| known == key).map(|(_, id)| *id)
    }

    /// Notes that a key does not work.
    pub(crate) fn refuse(&self, notes: &Notes, key: &str, remedy: &str) {
        if let Some(id) = self.id(key) {
            notes.ledger.refused(id, remedy);
        }
    }
}
