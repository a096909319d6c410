//! Mappings with fixed keys, and values that name files or what else the file describes.

use super::schema::Section;
use crate::{
    model::Source,
    reader::Field,
    text::{nearest, quote},
    values,
    yaml::Value,
};
use std::path::PathBuf;

impl<'a> Field<'a> {
    /// A file: relative to the directory of the configuration.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let path = self.parse(values::file)?;
        Some(self.origin().directory().join(path))
    }

    /// A PEM file, or the PEM text itself.
    pub(super) fn pem(&self) -> Option<Source> {
        let text = self.text()?;
        if !text.contains("-----BEGIN") {
            return self.file().map(Source::File);
        }
        if !text.trim().contains('\n') {
            return self.fail("PEM text must keep its lines; begin it with `|` on the line of the key");
        }
        Some(Source::inline(text))
    }

    /// A mapping with the keys of `section`; others are mistakes.
    pub(super) fn mapping(&self, section: &'static Section) -> Option<Mapping<'a>> {
        let Value::Mapping(entries) = &self.node().value else {
            let keys: Vec<_> = section.keys.iter().map(|key| format!("`{}`", key.name)).collect();
            return self.mismatch(&format!("a mapping with the keys {}", keys.join(", ")));
        };
        self.refuse_duplicates(entries);
        for entry in entries.iter().filter(|entry| !section.knows(&entry.key)) {
            let field = self.child(entry);
            field.error(unknown_key(&entry.key, section, field.home_of(&entry.key)));
        }
        Some(Mapping { field: self.clone(), section })
    }

    /// One of the names `known`, each of which is a `what`.
    pub(super) fn name_among(&self, known: &[&str], what: &str) -> Option<String> {
        self.parse(|name| match known.contains(&name) {
            true => Ok(name.to_owned()),
            false => Err(unknown_name(name, what, known)),
        })
    }
}

/// A mapping with the keys of a section.
pub(super) struct Mapping<'a> {
    field: Field<'a>,
    section: &'static Section,
}

impl<'a> Mapping<'a> {
    /// The value of `key`, if it is there. Of a duplicate, the first counts.
    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        debug_assert!(
            self.section.knows(key),
            "`{key}` is read but not in the schema of `{}`",
            self.section.path
        );
        self.field.entry(key)
    }

    /// The value of `key`; its absence is a mistake.
    pub(super) fn require(&self, key: &str) -> Option<Field<'a>> {
        let field = self.get(key);
        if field.is_none() {
            self.field.error(format!("`{key}` is missing; {}", self.about(key)));
        }
        field
    }

    /// What `parser` makes of the value of `key`, if it is there.
    pub(super) fn read<T>(&self, key: &str, parser: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        self.get(key)?.parse(parser)
    }

    /// What `parser` makes of the value of `key`, or `absent` without one; `None` if the value is a mistake.
    pub(super) fn read_or<T>(
        &self,
        key: &str,
        absent: T,
        parser: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match self.get(key) {
            Some(field) => field.parse(parser),
            None => Some(absent),
        }
    }

    /// Overwrites `value` with what `parser` makes of the value of `key`, if it is there.
    pub(super) fn update<T>(&self, key: &str, value: &mut T, parser: impl FnOnce(&str) -> Result<T, String>) {
        if let Some(parsed) = self.read(key, parser) {
            *value = parsed;
        }
    }

    /// The mapping itself, for mistakes that are not one key's.
    pub(super) fn field(&self) -> &Field<'a> {
        &self.field
    }

    fn about(&self, key: &str) -> String {
        let known = self.section.keys.iter().find(|known| known.name == key);
        known.map(|known| format!("add `{key}: ...` ({})", known.value)).unwrap_or_default()
    }
}

/// `home` is the path of a section that knows the key.
fn unknown_key(name: &str, section: &'static Section, home: Option<&str>) -> String {
    if let Some(known) = section.nearest(name) {
        return format!("unknown key; did you mean `{known}`?");
    }
    if let Some(home) = home {
        let home = if home.is_empty() { "the top level".into() } else { format!("`{home}`") };
        return format!("unknown key here; it belongs in {home}");
    }
    let keys: Vec<_> = section.keys.iter().map(|key| format!("`{}`", key.name)).collect();
    format!("unknown key; known here are {}", keys.join(", "))
}

/// The name that a reference to nothing was probably meant to be.
fn unknown_name(name: &str, what: &str, known: &[&str]) -> String {
    let name_quoted = quote(name);
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("no {what} is called {name_quoted}; did you mean `{near}`?");
    }
    match known {
        [] => format!("no {what} is called {name_quoted}; add it to `{what}s`"),
        _ => format!("no {what} is called {name_quoted}; known are {}", known.join(", ")),
    }
}
