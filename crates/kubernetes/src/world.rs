//! State of a translation: the objects, the outcomes of their settings, and the configuration that is made.

use crate::{
    config_map::Globals,
    notes::Notes,
    object::{Meta, Objects},
    options::Options,
};
use quadrille_draft::draft::Draft;
use std::cell::RefCell;

/// State of a translation.
#[derive(Debug)]
pub(crate) struct World<'o> {
    pub(crate) objects: &'o Objects,
    pub(crate) options: &'o Options,
    pub(crate) globals: Globals<'o>,
    pub(crate) notes: Notes,
    pub(crate) draft: RefCell<Draft>,
}

impl<'o> World<'o> {
    pub(crate) fn new(objects: &'o Objects, options: &'o Options) -> Self {
        let notes = Notes::default();
        let globals = Globals::find(objects, options, &notes);
        Self { objects, options, globals, notes, draft: RefCell::default() }
    }

    /// Notes that a setting of an object does not work, with its remedy.
    pub(crate) fn refuse(&self, meta: &Meta, setting: &str, remedy: impl Into<String>) {
        self.notes.ledger.refused(self.notes.of(meta, setting), remedy);
    }

    /// Notes that a setting of an object works differently.
    pub(crate) fn differ(&self, meta: &Meta, setting: &str, difference: impl Into<String>) {
        self.notes.ledger.differs(self.notes.of(meta, setting), difference);
    }

    /// Notes that a key of the ConfigMap does not work.
    pub(crate) fn refuse_global(&self, key: &str, remedy: &str) {
        self.globals.refuse(&self.notes, key, remedy);
    }

    /// Returns the data of another ConfigMap, which a key of the ConfigMap names as `namespace/name`.
    pub(crate) fn named_map(&self, key: &str) -> Vec<(String, String)> {
        let Some((namespace, name)) = self.globals.get(key).and_then(|text| text.split_once('/')) else {
            return Vec::new();
        };
        match self.objects.config_map(namespace, name) {
            Some(map) => map.data.clone(),
            None => {
                self.refuse_global(key, &format!("the ConfigMap that it names {}", self.objects.missing()));
                Vec::new()
            }
        }
    }
}
