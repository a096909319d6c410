//! Reader of a configuration tree, which tracks its position and collects every mistake instead of stopping at the
//! first.

use crate::{
    budget::Allowance,
    diagnostic::{Diagnostic, Diagnostics},
    model::{Origin, Place, Problem},
    suggest::quote,
    warnings::Warnings,
    yaml::{Entry, Node, Position, Value},
};
use std::{
    cell::RefCell,
    collections::{
        HashMap,
        hash_map::Entry::{Occupied, Vacant},
    },
    path::{Component, Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

/// State that all fields of one document share.
pub struct Reader {
    /// The document's file, and then the files that it includes.
    origins: Vec<Origin>,
    dialect: Dialect,
    home_of: fn(&str) -> Option<&'static str>,
    stranger: Option<Stranger>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Warnings>,
    references: RefCell<Vec<(Place, String)>>,
    left_out: RefCell<Vec<Diagnostic>>,
}

/// Restrictions on documents from an untrusted source.
struct Stranger {
    /// The directories below which they may name files.
    directories: Arc<[PathBuf]>,
    allowance: Rc<Allowance>,
}

/// The strictness of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The format of Quadrille's own files: every key has a value, and keys are written once.
    Strict,
    /// The JSON format of protobuf, with its common variants: null is an empty message, a single value may stand
    /// where the schema has a list, and a wrapped number may be written with its wrapper. The reader of a message
    /// checks for duplicates.
    Protobuf,
}

impl Reader {
    /// Makes a reader of a document with this origin.
    pub fn new(origin: Origin, dialect: Dialect) -> Self {
        Self {
            origins: vec![origin],
            dialect,
            home_of: |_| None,
            stranger: None,
            diagnostics: RefCell::default(),
            warnings: RefCell::default(),
            references: RefCell::default(),
            left_out: RefCell::default(),
        }
    }

    /// Adds the files that the document includes, in the order of their numbers in [positions](Position).
    pub(crate) fn with_included(mut self, files: impl IntoIterator<Item = Origin>) -> Self {
        self.origins.extend(files);
        self
    }

    /// Sets the function that returns the path of the section in which a key belongs, for keys that are written
    /// elsewhere.
    pub(crate) fn with_homes(self, home_of: fn(&str) -> Option<&'static str>) -> Self {
        Self { home_of, ..self }
    }

    /// Restricts a document from an untrusted source: it may name files below these directories only, and no
    /// environment variables, and may use no more memory than the allowance.
    pub fn of_stranger(self, directories: Arc<[PathBuf]>, allowance: Rc<Allowance>) -> Self {
        Self { stranger: Some(Stranger { directories, allowance }), ..self }
    }

    /// Returns the document as a field. `path` is the prefix of its fields' paths; empty for a whole file.
    pub fn root<'a>(&'a self, node: &'a Node, path: &str) -> Field<'a> {
        Field { reader: self, node, path: path.to_owned(), position: node.position }
    }

    /// Returns the mistakes of [parts that were left out](Field::leave_out).
    pub fn left_out(&self) -> Vec<Diagnostic> {
        self.left_out.take()
    }

    /// Returns the value read, with warnings.
    ///
    /// # Errors
    /// All mistakes, if there are any.
    pub fn finish<T>(self, read: Option<T>) -> Result<(T, Warnings), Diagnostics> {
        match (read, self.diagnostics.take()) {
            (Some(read), found) if found.is_empty() => Ok((read, self.warnings.into_inner())),
            (_, mut found) => {
                found.sort_by_key(|mistake| (self.number_of(&mistake.place.origin), mistake.place.line));
                Err(found.into())
            }
        }
    }

    fn number_of(&self, origin: &Origin) -> usize {
        self.origins.iter().position(|known| known == origin).unwrap_or_default()
    }

    fn origin_of(&self, position: Position) -> &Origin {
        self.origins.get(usize::from(position.file)).unwrap_or(&self.origins[0])
    }
}

/// A value of the document, with its place.
#[derive(Clone)]
pub struct Field<'a> {
    reader: &'a Reader,
    node: &'a Node,
    path: String,
    /// The position of the key, or of the list item.
    position: Position,
}

impl<'a> Field<'a> {
    /// Notes a mistake here.
    pub fn error(&self, problem: impl Into<Problem>) {
        self.reader.diagnostics.borrow_mut().push(Diagnostic::new(&self.place(), problem));
    }

    /// Notes a mistake here, and returns `None`.
    pub fn fail<T>(&self, problem: impl Into<Problem>) -> Option<T> {
        self.error(problem);
        None
    }

    /// Notes a mistake that was found elsewhere in the document.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.reader.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Returns whether mistakes of the document have been noted.
    pub(crate) fn has_mistakes(&self) -> bool {
        !self.reader.diagnostics.borrow().is_empty()
    }

    /// Reads a part of the document, and returns its mistakes apart from those of the rest.
    pub fn apart<T>(&self, read: impl FnOnce() -> T) -> (T, Vec<Diagnostic>) {
        let before = self.reader.diagnostics.take();
        let found = read();
        (found, self.reader.diagnostics.replace(before))
    }

    /// Notes mistakes of a part that is left out, so that they do not invalidate the document.
    pub fn leave_out(&self, mistakes: Vec<Diagnostic>) {
        self.reader.left_out.borrow_mut().extend(mistakes);
    }

    /// Notes mistakes of a document inside this text, at the line of the text.
    pub fn fail_inside<T>(&self, found: Diagnostics) -> Option<T> {
        let here = |mut inside: Diagnostic| {
            inside.place.line = self.place().line;
            inside.place.column = self.position.column;
            inside
        };
        self.reader.diagnostics.borrow_mut().extend(found.into_iter().map(here));
        None
    }

    /// Notes a warning. If several in a document of a program have the same `kind`, the first is shown with their
    /// number.
    pub fn warn(&self, kind: &str, problem: impl Into<Problem>) {
        let place = self.place();
        let by_place = (!self.lenient()).then(|| format!("{kind} {place} {}", place.column));
        let kind = by_place.as_deref().unwrap_or(kind);
        self.reader.warnings.borrow_mut().add_at(kind, place, problem.into());
    }

    /// Adds the warnings of a document inside this one.
    pub fn extend_warnings(&self, warnings: Warnings) {
        self.reader.warnings.borrow_mut().extend(warnings);
    }

    /// Notes that the document must define this name.
    pub(crate) fn refer_to(&self, name: &str) {
        self.reader.references.borrow_mut().push((self.place(), name.to_owned()));
    }

    /// Returns all names that the document [refers to](Self::refer_to), with the place of the reference.
    pub(crate) fn references(&self) -> Vec<(Place, String)> {
        self.reader.references.take()
    }

    /// Returns the file in which the field is written, or the origin of the document.
    pub fn origin(&self) -> &Origin {
        self.reader.origin_of(self.position)
    }

    /// Returns whether the document may name any file and variable of this machine.
    pub fn is_trusted(&self) -> bool {
        self.reader.stranger.is_none()
    }

    /// Returns whether the document may name this file. `..` in a path is not resolved, but refused.
    pub fn may_name(&self, file: &Path) -> bool {
        let plain = || file.components().all(|part| part != Component::ParentDir);
        let Some(Stranger { directories, .. }) = &self.reader.stranger else { return true };
        plain() && directories.iter().any(|directory| file.starts_with(directory))
    }

    /// Returns the remaining allowance of the document; `None` for the operator's own, which has no limit.
    pub fn allowance(&self) -> Option<&Allowance> {
        self.reader.stranger.as_ref().map(|stranger| &*stranger.allowance)
    }

    /// Returns the path of the section in which `key` belongs, if there is one.
    pub(crate) fn home_of(&self, key: &str) -> Option<&'static str> {
        (self.reader.home_of)(key)
    }

    /// Returns the place of the field.
    pub fn place(&self) -> Place {
        Place::at(self.origin(), self.position, &self.path)
    }

    /// Returns the line of another field, as messages about this one name it: with its file, if that differs.
    pub(crate) fn line_of(&self, other: &Place) -> String {
        let line = other.line.unwrap_or_default();
        if other.origin == *self.origin() {
            format!("line {line}")
        } else {
            format!("{}:{line}", other.origin)
        }
    }

    /// Returns the path of the field, as mistakes show it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the tree below the field.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns whether this is a single value.
    pub fn is_scalar(&self) -> bool {
        matches!(self.node.value, Value::Scalar(_))
    }

    /// Returns whether this is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// Returns whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// Returns whether this is an empty list.
    pub fn is_empty_list(&self) -> bool {
        matches!(&self.node.value, Value::Sequence(items) if items.is_empty())
    }

    /// Returns the text of a single value.
    pub fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar(text) => Some(text),
            Value::Sequence(items) if is_ipv6(items) => {
                let message = "found a list, expected a single value";
                self.fail(Problem::new(message, "an IPv6 address needs quotes: \"[::]:8443\""))
            }
            Value::Mapping(entries) if self.lenient() => match entries.as_slice() {
                // A wrapper such as `google.protobuf.UInt32Value`, written out.
                [Entry { key, value: Node { value: Value::Scalar(text), .. }, .. }] if key == "value" => {
                    Some(text)
                }
                _ => self.mismatch("a single value"),
            },
            _ => self.mismatch("a single value"),
        }
    }

    /// Parses a single value; an error becomes a mistake here.
    pub fn parse<T>(&self, parser: impl FnOnce(&str) -> Result<T, Problem>) -> Option<T> {
        parser(self.text()?).map_err(|problem| self.error(problem)).ok()
    }

    /// Returns the items of a list, without noting mistakes; none if this is not a list.
    pub(crate) fn listed(&self) -> Vec<Self> {
        if let Value::Sequence(items) = &self.node.value { self.numbered(items) } else { Vec::new() }
    }

    fn numbered(&self, items: &'a [Node]) -> Vec<Self> {
        let item = |(index, node): (usize, &'a Node)| {
            let path = format!("{}[{index}]", self.path);
            Self { reader: self.reader, node, path, position: node.position }
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Returns the items of a list.
    pub fn items(&self) -> Vec<Self> {
        let items = match &self.node.value {
            Value::Sequence(items) => items,
            Value::Null if self.lenient() => return Vec::new(),
            Value::Scalar(_) | Value::Mapping(_) if self.lenient() => return vec![self.clone()],
            _ => return self.mismatch("a list, with `- ` before every item").unwrap_or_default(),
        };
        if items.is_empty() && !self.lenient() {
            self.error(Problem::new("the list is empty", "give it at least one item"));
        }
        self.numbered(items)
    }

    /// Returns the entries of a mapping whose keys are names chosen by the user.
    pub fn entries(&self) -> Vec<(&'a str, Self)> {
        let entries = match &self.node.value {
            Value::Mapping(entries) => entries,
            Value::Null if self.lenient() => return Vec::new(),
            _ => return self.mismatch("a mapping, with `name:` before every entry").unwrap_or_default(),
        };
        if !self.lenient() {
            self.refuse_duplicates(entries);
        }
        entries.iter().map(|entry| (entry.key.as_str(), self.child(entry))).collect()
    }

    /// Returns the keys of a mapping.
    pub(crate) fn keys(&self) -> Vec<&'a str> {
        let Value::Mapping(entries) = &self.node.value else { return Vec::new() };
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    /// Returns the entry of this key, if this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<Self> {
        let Value::Mapping(entries) = &self.node.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.child(entry))
    }

    /// Returns the entry of this key, or this field itself, as the place of a mistake that concerns the key.
    pub fn at(&self, key: &str) -> Self {
        self.entry(key).unwrap_or_else(|| self.clone())
    }

    /// Returns the value of an entry of this mapping.
    pub fn child(&self, entry: &'a Entry) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, quote(&entry.key).trim_matches('`'));
        Self { reader: self.reader, node: &entry.value, path, position: entry.position }
    }

    /// Notes a mistake for each duplicate key.
    pub(crate) fn refuse_duplicates(&self, entries: &'a [Entry]) {
        let mut seen = HashMap::new();
        for entry in entries {
            match seen.entry(entry.key.as_str()) {
                Vacant(first) => _ = first.insert(entry.position),
                Occupied(first) => {
                    let second = self.child(entry);
                    let first = Place::at(self.reader.origin_of(*first.get()), *first.get(), "");
                    let first = second.line_of(&first);
                    second.error(Problem::new(format!("written twice, first on {first}"), "remove one"));
                }
            }
        }
    }

    /// Notes that the value has the wrong type.
    pub fn mismatch<T>(&self, expected: &str) -> Option<T> {
        let found = match &self.node.value {
            Value::Null => {
                return self
                    .fail(Problem::new("has no value", format!("remove the key, or give it {expected}")));
            }
            Value::Scalar(text) => quote(text),
            Value::Sequence(_) => "a list".into(),
            Value::Mapping(_) => "a mapping".into(),
        };
        self.fail(format!("found {found}, expected {expected}"))
    }

    fn lenient(&self) -> bool {
        self.reader.dialect == Dialect::Protobuf
    }
}

/// Returns whether a list is an IPv6 address without quotes: YAML reads `[::1]` as a list.
fn is_ipv6(items: &[Node]) -> bool {
    matches!(items, [Node { value: Value::Scalar(text), .. }] if text.contains("::"))
}
