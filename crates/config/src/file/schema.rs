//! The shape of the file as one table for each section: what a key is called, what it does and costs, what it changes
//! in the model, and how the model shows it.
//!
//! Everything that knows keys comes from these tables: reading, which refuses what is not in them and suggests what is;
//! the page `/config`; what a running process takes only at its next start; and `docs/reference/configuration.md`.

use crate::{Field, Problem, text::nearest, yaml::Value as Yaml};
use serde_json::Value;

/// A mapping with fixed keys. Reading fills a `D`, and a part `M` of the model is shown; they differ where the model
/// has no value that stands for a key that was left out or wrong, or where several keys make one setting.
pub(super) struct Section<D: 'static, M: 'static = D> {
    /// Where it stands, such as `listeners[].tls`; empty for the whole document.
    pub(super) path: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// The keys it knows, in the order in which they are documented and read: a key may depend on those before it.
    pub(super) keys: &'static [Key<D, M>],
}

/// One key of a section.
pub(super) struct Key<D, M = D> {
    pub(super) name: &'static str,
    /// What may be written, with the unit.
    pub(super) value: &'static str,
    pub(super) preset: Preset,
    /// What it does and what it costs.
    pub(super) about: &'static str,
    /// Whether a change takes effect at the next start, and not by a reload.
    pub(super) needs_restart: bool,
    /// What the value of the key changes; what is wrong with the value is noted, and changes nothing.
    pub(super) read: fn(&Field<'_>, &mut D),
    /// The value that says the same, with secrets left out; null if the key would not be written.
    pub(super) show: fn(&M) -> Value,
}

/// What holds if the key is left out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preset {
    /// The key cannot be left out.
    Required,
    /// The same as this value written out.
    Is(&'static str),
    /// Something that cannot be written as a value.
    Means(&'static str),
}

/// What people are told about a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyDescription {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
    pub(super) preset: Preset,
    pub(super) about: &'static str,
    pub(super) needs_restart: bool,
}

/// What people are told about a section, whatever it is in the model.
pub(super) trait Described {
    fn path(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn keys(&self) -> Vec<KeyDescription>;
}

/// For documents that no page shows.
pub(super) fn not_shown<M>(_: &M) -> Value {
    Value::Null
}

impl<D, M> Section<D, M> {
    /// Reads the keys of a mapping into `draft`. Keys that are unknown, written twice or missing are mistakes. `None`
    /// if it is no mapping.
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

    /// What the section would say to the effect of this part of the model.
    pub(super) fn show(&self, model: &M) -> Value {
        let shown = self.keys.iter().map(|key| (key.name, (key.show)(model)));
        shown.filter(|(_, value)| !value.is_null()).collect()
    }

    /// A key that cannot be left out here, where other keys decide whether it can.
    pub(super) fn require(&self, field: &Field<'_>, name: &str) {
        if let (None, Some(key)) = (field.entry(name), self.key(name)) {
            field.error(key.missing());
        }
    }

    fn key(&self, name: &str) -> Option<&Key<D, M>> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// `home` is the path of a section that knows the key.
    fn unknown_key(&self, name: &str, home: Option<&str>) -> Problem {
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
