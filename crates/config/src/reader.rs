//! Walks the tree of a configuration, knows where it stands, and collects every mistake instead of stopping at the
//! first.

use crate::{
    allowance::Allowance,
    diagnostic::{Diagnostic, Diagnostics},
    model::{Origin, Place, Problem},
    text::quote,
    warnings::Warnings,
    yaml::{Entry, Node, Value},
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

/// What all fields of one document share.
pub struct Reader {
    origin: Origin,
    dialect: Dialect,
    home_of: fn(&str) -> Option<&'static str>,
    stranger: Option<Stranger>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Warnings>,
    references: RefCell<Vec<(Place, String)>>,
}

/// What holds for documents of somebody else.
struct Stranger {
    /// Below which they may name files.
    directories: Arc<[PathBuf]>,
    allowance: Rc<Allowance>,
}

/// How strictly a tree is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As our own files are written: what is there has a value, and keys are written once.
    Strict,
    /// As protobuf's JSON is read, and people write it: nothing is an empty message, a single value may stand where the
    /// schema has a list, and a wrapped number may be written with its wrapper. Who reads a message looks for
    /// duplicates.
    Protobuf,
}

impl Reader {
    /// A reader of a document with this origin.
    pub fn new(origin: Origin, dialect: Dialect) -> Self {
        Self {
            origin,
            dialect,
            home_of: |_| None,
            stranger: None,
            diagnostics: RefCell::default(),
            warnings: RefCell::default(),
            references: RefCell::default(),
        }
    }

    /// The same, knowing the section in which a key belongs, by its path, for keys that are written elsewhere.
    pub(crate) fn with_homes(self, home_of: fn(&str) -> Option<&'static str>) -> Self {
        Self { home_of, ..self }
    }

    /// The same for a document of somebody who must not read this machine, nor use it up: it may name files below these
    /// directories only, and no environment variables, and costs no more than is allowed to it.
    pub fn of_stranger(self, directories: Arc<[PathBuf]>, allowance: Rc<Allowance>) -> Self {
        Self { stranger: Some(Stranger { directories, allowance }), ..self }
    }

    /// The document as a field. `path` is what its own fields' paths begin with; empty for a whole file.
    pub fn root<'a>(&'a self, node: &'a Node, path: &str) -> Field<'a> {
        Field { reader: self, node, path: path.to_owned(), line: node.line }
    }

    /// What was read, with what is worth knowing about it.
    ///
    /// # Errors
    /// Everything that was found wrong, if anything was.
    pub fn finish<T>(self, read: Option<T>) -> Result<(T, Warnings), Diagnostics> {
        match (read, self.diagnostics.into_inner()) {
            (Some(read), found) if found.is_empty() => Ok((read, self.warnings.into_inner())),
            (_, found) => Err(Diagnostics::new(found)),
        }
    }
}

/// A value of the document, with its place.
#[derive(Clone)]
pub struct Field<'a> {
    reader: &'a Reader,
    node: &'a Node,
    path: String,
    /// Of the key, or of the list item; 0 if it comes from no text.
    line: u64,
}

impl<'a> Field<'a> {
    /// Notes a mistake here.
    pub fn error(&self, problem: impl Into<Problem>) {
        self.reader.diagnostics.borrow_mut().push(Diagnostic::new(&self.place(), problem));
    }

    /// Notes a mistake here, and has no value.
    pub fn fail<T>(&self, problem: impl Into<Problem>) -> Option<T> {
        self.error(problem);
        None
    }

    /// Notes a mistake that was found elsewhere in the document.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.reader.diagnostics.borrow_mut().push(diagnostic);
    }

    /// Notes mistakes of a document inside this text, at the line of the text.
    pub fn fail_inside<T>(&self, found: Diagnostics) -> Option<T> {
        let here = |mut inside: Diagnostic| {
            inside.place.line = self.place().line;
            inside
        };
        self.reader.diagnostics.borrow_mut().extend(found.into_iter().map(here));
        None
    }

    /// Notes something that is worth knowing. Of several with the same `kind`, the first is shown with their number.
    pub fn warn(&self, kind: &str, text: impl Into<String>) {
        self.reader.warnings.borrow_mut().add(kind, || format!("{}: {}", self.place(), text.into()));
    }

    /// Adds what is worth knowing about a document inside this one.
    pub fn extend_warnings(&self, warnings: Warnings) {
        self.reader.warnings.borrow_mut().extend(warnings);
    }

    /// Notes that something of this name must be in the document.
    pub(crate) fn refer_to(&self, name: &str) {
        self.reader.references.borrow_mut().push((self.place(), name.to_owned()));
    }

    /// Everything in the document that was [referred to](Self::refer_to), with the place of the reference.
    pub(crate) fn references(&self) -> Vec<(Place, String)> {
        self.reader.references.take()
    }

    /// What the document was read from.
    pub fn origin(&self) -> &Origin {
        &self.reader.origin
    }

    /// Whether the document may name everything of this machine.
    pub fn is_trusted(&self) -> bool {
        self.reader.stranger.is_none()
    }

    /// Whether the document may name this file. What `..` in a path leads to is not looked up.
    pub fn may_name(&self, file: &Path) -> bool {
        let plain = || file.components().all(|part| part != Component::ParentDir);
        let Some(Stranger { directories, .. }) = &self.reader.stranger else { return true };
        plain() && directories.iter().any(|directory| file.starts_with(directory))
    }

    /// What the document may still cost, unless that is the operator's own affair.
    pub fn allowance(&self) -> Option<&Allowance> {
        self.reader.stranger.as_ref().map(|stranger| &*stranger.allowance)
    }

    /// The path of the section in which `key` belongs, if the document has one that knows it.
    pub(crate) fn home_of(&self, key: &str) -> Option<&'static str> {
        (self.reader.home_of)(key)
    }

    /// Where it is written.
    pub fn place(&self) -> Place {
        Place::field(&self.reader.origin, self.line, &self.path)
    }

    /// The line of the key, or of the list item; 0 if it comes from no text.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The path of the field, as mistakes show it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The tree below.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Whether this is a single value.
    pub fn is_scalar(&self) -> bool {
        matches!(self.node.value, Value::Scalar(_))
    }

    /// Whether this has keys.
    pub fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// Whether this is a list of nothing.
    pub fn is_empty_list(&self) -> bool {
        matches!(&self.node.value, Value::Sequence(items) if items.is_empty())
    }

    /// The text of a single value.
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

    /// What `parser` makes of a single value; its error becomes a mistake here.
    pub fn parse<T>(&self, parser: impl FnOnce(&str) -> Result<T, Problem>) -> Option<T> {
        parser(self.text()?).map_err(|problem| self.error(problem)).ok()
    }

    /// The items of a list.
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
        let item = |(index, node): (usize, &'a Node)| {
            let path = format!("{}[{index}]", self.path);
            Self { reader: self.reader, node, path, line: node.line }
        };
        items.iter().enumerate().map(item).collect()
    }

    /// The entries of a mapping whose keys are names chosen by the user.
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

    /// The keys of a mapping.
    pub(crate) fn keys(&self) -> Vec<&'a str> {
        let Value::Mapping(entries) = &self.node.value else { return Vec::new() };
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    /// The entry of this key, if this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<Self> {
        let Value::Mapping(entries) = &self.node.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.child(entry))
    }

    /// The entry of this key, or this itself, to name a mistake that concerns the key.
    pub fn at(&self, key: &str) -> Self {
        self.entry(key).unwrap_or_else(|| self.clone())
    }

    /// The value of an entry of this mapping.
    pub fn child(&self, entry: &'a Entry) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, quote(&entry.key).trim_matches('`'));
        Self { reader: self.reader, node: &entry.value, path, line: entry.line }
    }

    /// Keys that are written twice are mistakes.
    pub(crate) fn refuse_duplicates(&self, entries: &'a [Entry]) {
        let mut seen = HashMap::new();
        for entry in entries {
            match seen.entry(entry.key.as_str()) {
                Vacant(first) => _ = first.insert(entry.line),
                Occupied(first) => {
                    let first = first.get();
                    self.child(entry)
                        .error(Problem::new(format!("written twice, first on line {first}"), "remove one"));
                }
            }
        }
    }

    /// Something else was expected here.
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

/// YAML takes the brackets of `[::1]` for a list.
fn is_ipv6(items: &[Node]) -> bool {
    matches!(items, [Node { value: Value::Scalar(text), .. }] if text.contains("::"))
}
