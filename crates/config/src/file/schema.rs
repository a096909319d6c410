//! The schema of the file, as one table for each section. For each key it has the name, the description with the
//! cost, the function that reads it into the model, and the one that shows it.
//!
//! All code that depends on keys uses these tables: the reader, which refuses unknown keys and suggests known ones;
//! the page `/config`; the list of keys that take effect at the next start; and `docs/reference/configuration.md`.

use super::foreign::foreign;
use crate::{Field, Problem, suggest::nearest, yaml::Value as Yaml};
use serde_json::Value;

/// A mapping with fixed keys. Reading fills a draft `D`, and a part `M` of the model is shown; they differ if the
/// model has no value for a missing or invalid key, or if several keys form one setting.
pub(super) struct Section<D: 'static, M: 'static = D> {
    /// The path of the section, such as `listeners[].tls`; empty for the whole document.
    pub(super) path: &'static str,
    /// The description.
    pub(super) about: &'static str,
    /// The keys, in the order in which they are documented and read: a key may depend on those before it.
    pub(super) keys: &'static [Key<D, M>],
}

/// One key of a section.
pub(super) struct Key<D, M = D> {
    pub(super) name: &'static str,
    /// The allowed values, with the unit.
    pub(super) value: &'static str,
    pub(super) preset: Preset,
    /// The description, with the cost.
    pub(super) about: &'static str,
    /// Whether a change takes effect at the next start, and not by a reload.
    pub(super) needs_restart: bool,
    /// Reads the value into the draft. A mistake in the value is noted, and changes nothing.
    pub(super) read: fn(&Field<'_>, &mut D),
    /// Returns the equivalent value, without secrets; null if the key would not be written.
    pub(super) show: fn(&M) -> Value,
}

/// The effect of leaving the key out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preset {
    /// The key cannot be left out.
    Required,
    /// Equal to writing this value.
    Is(&'static str),
    /// A default that cannot be written as a value.
    Means(&'static str),
}

/// The documentation of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyDescription {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
    pub(super) preset: Preset,
    pub(super) about: &'static str,
    pub(super) needs_restart: bool,
}

/// The documentation of a section, independent of its type in the model.
pub(super) trait Described {
    fn path(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn keys(&self) -> Vec<KeyDescription>;
}

/// Returns null, for documents that no page shows.
pub(super) fn not_shown<M>(_: &M) -> Value {
    Value::Null
}

impl<D, M> Section<D, M> {
    /// Reads the keys of a mapping into `draft`. Unknown, duplicate and missing keys are mistakes. `None` if it is
    /// not a mapping.
    pub(super) fn read(&self, field: &Field<'_>, draft: &mut D) -> Option<()> {
        let Yaml::Mapping(entries) = &field.node().value else {
            return field.mismatch(&format!("a mapping with the keys {}", self.names()));
        };
        field.refuse_duplicates(entries);
        for entry in entries.iter().filter(|entry| self.key(&entry.key).is_none()) {
            field.child(entry).error(self.unknown_key(&entry.key, field.home_of(&entry.key)));
        }
        for key in self.keys {
            match (field.entry(key.name), key.preset) {
                (Some(value), _) => (key.read)(&value, draft),
                (None, Preset::Required) => field.error(key.missing()),
                (None, _) => {}
            }
        }
        Some(())
    }

    /// Shows this part of the model as the section would be written.
    pub(super) fn show(&self, model: &M) -> Value {
        let shown = self.keys.iter().map(|key| (key.name, (key.show)(model)));
        shown.filter(|(_, value)| !value.is_null()).collect()
    }

    /// Notes a mistake if the key is missing, for keys whose requirement depends on other keys.
    pub(super) fn require(&self, field: &Field<'_>, name: &str) {
        if let (None, Some(key)) = (field.entry(name), self.key(name)) {
            field.error(key.missing());
        }
    }

    fn key(&self, name: &str) -> Option<&Key<D, M>> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the mistake for an unknown key. `home` is the path of a section that has the key.
    fn unknown_key(&self, name: &str, home: Option<&str>) -> Problem {
        if let Some(problem) = foreign(name) {
            return problem;
        }
        if let Some(known) = nearest(name, self.keys.iter().map(|key| key.name)) {
            return Problem::new("unknown key", format!("did you mean `{known}`?"));
        }
        if let Some(home) = home {
            let home = if home.is_empty() { "the top level".into() } else { format!("`{home}`") };
            return Problem::new("unknown key here", format!("it belongs in {home}"));
        }
        Problem::new("unknown key", format!("known here are {}", self.names()))
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| format!("`{}`", key.name)).collect();
        names.join(", ")
    }
}

impl<D, M> Key<D, M> {
    /// A key whose changes take effect by a reload.
    pub(super) const fn new(
        name: &'static str,
        value: &'static str,
        preset: Preset,
        about: &'static str,
        read: fn(&Field<'_>, &mut D),
        show: fn(&M) -> Value,
    ) -> Self {
        Self { name, value, preset, about, needs_restart: false, read, show }
    }

    /// A key whose changes take effect at the next start.
    pub(super) const fn at_restart(
        name: &'static str,
        value: &'static str,
        preset: Preset,
        about: &'static str,
        read: fn(&Field<'_>, &mut D),
        show: fn(&M) -> Value,
    ) -> Self {
        Self { needs_restart: true, ..Self::new(name, value, preset, about, read, show) }
    }

    fn missing(&self) -> Problem {
        let name = self.name;
        Problem::new(format!("`{name}` is missing"), format!("add `{name}: ...` ({})", self.value))
    }
}

impl<D, M> Described for Section<D, M> {
    fn path(&self) -> &'static str {
        self.path
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn keys(&self) -> Vec<KeyDescription> {
        let described = |key: &Key<D, M>| {
            let Key { name, value, preset, about, needs_restart, .. } = *key;
            KeyDescription { name, value, preset, about, needs_restart }
        };
        self.keys.iter().map(described).collect()
    }
}
