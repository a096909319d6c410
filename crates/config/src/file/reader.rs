//! Walks the tree, knows where it stands, and collects every mistake instead of stopping at the first.

use super::{error::ConfigError, schema::Section, sections::SECTIONS};
use crate::{
    model::{Place, Source},
    text::{nearest, quote},
    values,
    yaml::{Entry, Node, Value},
};
use std::{
    cell::RefCell,
    collections::{
        HashMap,
        hash_map::Entry::{Occupied, Vacant},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// What all fields of one file share.
pub(super) struct Reader {
    file: Arc<str>,
    /// Relative paths start here.
    directory: PathBuf,
    errors: RefCell<Vec<ConfigError>>,
}

impl Reader {
    /// A reader of the file of this name; relative paths in it start at its directory.
    pub(super) fn new(file: &str) -> Self {
        let directory = Path::new(file).parent().map(Path::to_owned).unwrap_or_default();
        Self { file: file.into(), directory, errors: RefCell::default() }
    }

    /// The document as a field.
    pub(super) fn root<'a>(&'a self, node: &'a Node) -> Field<'a> {
        Field { reader: self, node, path: String::new(), line: node.line }
    }

    pub(super) fn error(&self, line: u64, field: &str, message: impl Into<String>) {
        let (field, message) = (field.to_owned(), message.into());
        self.errors.borrow_mut().push(ConfigError {
            file: self.file.clone(),
            line: Some(line),
            field,
            message,
        });
    }

    /// Everything that was found wrong.
    pub(super) fn into_errors(self) -> Vec<ConfigError> {
        self.errors.into_inner()
    }
}

/// A value of the file, with its place.
#[derive(Clone)]
pub(super) struct Field<'a> {
    reader: &'a Reader,
    node: &'a Node,
    path: String,
    /// Of the key, or of the list item.
    line: u64,
}

impl<'a> Field<'a> {
    /// Notes a mistake here.
    pub(super) fn error(&self, message: impl Into<String>) {
        self.reader.error(self.line, &self.path, message);
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn place(&self) -> Place {
        Place::line(&self.reader.file, self.line, &self.path)
    }

    /// Whether this is a single value: most sections have a short form.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(self.node.value, Value::Scalar(_))
    }

    pub(super) fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    pub(super) fn is_empty_list(&self) -> bool {
        matches!(&self.node.value, Value::Sequence(items) if items.is_empty())
    }

    /// The text of a single value.
    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar(text) => Some(text),
            Value::Sequence(items) if is_ipv6(items) => {
                self.mismatch("a single value; an IPv6 address needs quotes: \"[::]:8443\"")
            }
            _ => self.mismatch("a single value"),
        }
    }

    /// What `parser` makes of a single value; its error becomes a mistake here.
    pub(super) fn parse<T>(&self, parser: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parser(self.text()?).map_err(|message| self.error(message)).ok()
    }

    /// A file: relative to the directory of the configuration.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let path = self.parse(values::file)?;
        Some(self.reader.directory.join(path))
    }

    /// A PEM file, or the PEM text itself.
    pub(super) fn pem(&self) -> Option<Source> {
        let text = self.text()?;
        if !text.contains("-----BEGIN") {
            return self.file().map(Source::File);
        }
        if !text.trim().contains('\n') {
            self.error("PEM text must keep its lines; begin it with `|` on the line of the key");
            return None;
        }
        Some(Source::inline(text))
    }

    /// The items of a list; a list with nothing in it is a mistake.
    pub(super) fn items(&self) -> Vec<Self> {
        let Value::Sequence(items) = &self.node.value else {
            return self.mismatch("a list, with `- ` before every item").unwrap_or_default();
        };
        if items.is_empty() {
            self.error("the list is empty; give it at least one item");
        }
        let item = |(index, node): (usize, &'a Node)| {
            let path = format!("{}[{index}]", self.path);
            Self { reader: self.reader, node, path, line: node.line }
        };
        items.iter().enumerate().map(item).collect()
    }

    /// The entries of a mapping whose keys are names chosen by the user.
    pub(super) fn entries(&self) -> Vec<(&'a str, Self)> {
        let Value::Mapping(entries) = &self.node.value else {
            return self.mismatch("a mapping, with `name:` before every entry").unwrap_or_default();
        };
        self.refuse_duplicates(entries);
        entries.iter().map(|entry| (entry.key.as_str(), self.child(entry))).collect()
    }

    /// A mapping with the keys of `section`; others are mistakes.
    pub(super) fn mapping(&self, section: &'static Section) -> Option<Mapping<'a>> {
        let Value::Mapping(entries) = &self.node.value else {
            let keys: Vec<_> = section.keys.iter().map(|key| format!("`{}`", key.name)).collect();
            return self.mismatch(&format!("a mapping with the keys {}", keys.join(", ")));
        };
        self.refuse_duplicates(entries);
        for entry in entries.iter().filter(|entry| !section.knows(&entry.key)) {
            self.child(entry).error(unknown_key(&entry.key, section));
        }
        Some(Mapping { field: self.clone(), section })
    }

    /// The entry of this key, if this is a mapping that has it.
    pub(super) fn entry(&self, key: &str) -> Option<Self> {
        let Value::Mapping(entries) = &self.node.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.child(entry))
    }

    /// The entry of this key, or this itself, to name a mistake that concerns the key.
    pub(super) fn at(&self, key: &str) -> Self {
        self.entry(key).unwrap_or_else(|| self.clone())
    }

    fn child(&self, entry: &'a Entry) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, quote(&entry.key).trim_matches('`'));
        Self { reader: self.reader, node: &entry.value, path, line: entry.line }
    }

    fn refuse_duplicates(&self, entries: &'a [Entry]) {
        let mut seen = HashMap::new();
        for entry in entries {
            match seen.entry(entry.key.as_str()) {
                Vacant(first) => _ = first.insert(entry.line),
                Occupied(first) => {
                    let first = first.get();
                    self.child(entry).error(format!("written twice, first on line {first}; remove one"));
                }
            }
        }
    }

    fn mismatch<T>(&self, expected: &str) -> Option<T> {
        let found = match &self.node.value {
            Value::Null => {
                self.error(format!("has no value; remove the key, or give it {expected}"));
                return None;
            }
            Value::Scalar(text) => quote(text),
            Value::Sequence(_) => "a list".into(),
            Value::Mapping(_) => "a mapping".into(),
        };
        self.error(format!("found {found}, expected {expected}"));
        None
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

/// YAML takes the brackets of `[::1]` for a list.
fn is_ipv6(items: &[Node]) -> bool {
    matches!(items, [Node { value: Value::Scalar(text), .. }] if text.contains("::"))
}

fn unknown_key(name: &str, section: &'static Section) -> String {
    if let Some(known) = section.nearest(name) {
        return format!("unknown key; did you mean `{known}`?");
    }
    if let Some(home) = SECTIONS.iter().find(|other| other.knows(name)) {
        let home = if home.path.is_empty() { "the top level".into() } else { format!("`{}`", home.path) };
        return format!("unknown key here; it belongs in {home}");
    }
    let keys: Vec<_> = section.keys.iter().map(|key| format!("`{}`", key.name)).collect();
    format!("unknown key; known here are {}", keys.join(", "))
}

/// The name that a reference to nothing was probably meant to be.
pub(super) fn unknown_name(name: &str, what: &str, known: &[&str]) -> String {
    let name_quoted = quote(name);
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("no {what} is called {name_quoted}; did you mean `{near}`?");
    }
    match known {
        [] => format!("no {what} is called {name_quoted}; add it to `{what}s`"),
        _ => format!("no {what} is called {name_quoted}; known are {}", known.join(", ")),
    }
}
