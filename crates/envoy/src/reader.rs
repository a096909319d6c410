//! Walks the tree of a configuration: knows where it stands, which fields a message has, and collects every mistake
//! instead of stopping at the first.
//!
//! Lenient where people are: names may be written as in the protocol (`poll_delay`) or as in its JSON (`pollDelay`),
//! a single value may stand where the schema has a list, and a wrapped number may be written with its wrapper.

use crate::{
    schema::{FieldPolicy, Schema},
    warnings::Warnings,
};
use quadrille_config::{
    ConfigError, ConfigErrors,
    model::Place,
    quote,
    yaml::{Entry, Node, Value},
};
use std::{borrow::Cow, cell::RefCell, sync::Arc};

/// What all fields of one document share.
pub(crate) struct Reader {
    /// The file, or what else the document is called.
    origin: Arc<str>,
    errors: RefCell<Vec<ConfigError>>,
    warnings: RefCell<Warnings>,
}

impl Reader {
    pub(crate) fn new(origin: &str) -> Self {
        Self { origin: origin.into(), errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// The document as a field. `path` is what its own fields' paths begin with; empty for a whole file.
    pub(crate) fn root<'a>(&'a self, node: &'a Node, path: &str) -> Field<'a> {
        Field { reader: self, node, path: path.to_owned(), line: node.line }
    }

    /// What was read, with what is worth knowing about it, unless anything was wrong.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<(T, Warnings), ConfigErrors> {
        match (read, self.errors.into_inner()) {
            (Some(read), errors) if errors.is_empty() => Ok((read, self.warnings.into_inner())),
            (_, errors) => Err(ConfigErrors::new(errors)),
        }
    }
}

/// A value of the document, with its place.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    reader: &'a Reader,
    node: &'a Node,
    path: String,
    /// Of the key, or of the list item; 0 if it comes from no text.
    line: u64,
}

impl<'a> Field<'a> {
    /// Notes a mistake here.
    pub(crate) fn error(&self, message: impl Into<String>) {
        self.reader.errors.borrow_mut().push(ConfigError {
            file: self.reader.origin.clone(),
            line: (self.line > 0).then_some(self.line),
            field: self.path.clone(),
            message: message.into(),
        });
    }

    /// Notes a mistake here, and has no value.
    pub(crate) fn fail<T>(&self, message: impl Into<String>) -> Option<T> {
        self.error(message);
        None
    }

    /// Notes something that is worth knowing. Of several with the same `kind`, the first is shown with their number.
    pub(crate) fn warn(&self, kind: &str, message: impl Into<String>) {
        self.reader.warnings.borrow_mut().add(kind, || format!("{}: {}", self.place(), message.into()));
    }

    /// Adds what is worth knowing about a document inside this one.
    pub(crate) fn extend_warnings(&self, warnings: Warnings) {
        self.reader.warnings.borrow_mut().extend(warnings);
    }

    pub(crate) fn place(&self) -> Place {
        match self.line {
            0 => Place::field(&self.reader.origin, &self.path),
            line => Place::line(&self.reader.origin, line, &self.path),
        }
    }

    /// The path of the field, as errors show it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The tree below.
    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }

    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// The text of a single value.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar(text) => Some(text),
            Value::Null => self.fail("has no value"),
            Value::Sequence(_) => self.fail("found a list, expected a single value"),
            Value::Mapping(entries) => match entries.as_slice() {
                // A wrapper such as `google.protobuf.UInt32Value`, written out.
                [Entry { key, value: Node { value: Value::Scalar(text), .. }, .. }] if key == "value" => {
                    Some(text)
                }
                _ => self.fail("found a mapping, expected a single value"),
            },
        }
    }

    /// What `parser` makes of a single value; its error becomes a mistake here.
    pub(crate) fn parse<T>(&self, parser: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parser(self.text()?).map_err(|message| self.error(message)).ok()
    }

    /// The items of a list. A single value is a list of one, as people write it.
    pub(crate) fn items(&self) -> Vec<Self> {
        match &self.node.value {
            Value::Null => Vec::new(),
            Value::Scalar(_) | Value::Mapping(_) => vec![self.clone()],
            Value::Sequence(items) => {
                let item = |(index, node): (usize, &'a Node)| {
                    let path = format!("{}[{index}]", self.path);
                    Self { reader: self.reader, node, path, line: node.line }
                };
                items.iter().enumerate().map(item).collect()
            }
        }
    }

    /// The entries of a map whose keys are the user's.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        match &self.node.value {
            Value::Null => Vec::new(),
            Value::Mapping(entries) => {
                entries.iter().map(|entry| (entry.key.as_str(), self.child(entry))).collect()
            }
            _ => self.fail("expected a mapping").unwrap_or_default(),
        }
    }

    /// A message of this schema; fields that it does not know are refused or ignored, as the schema says.
    pub(crate) fn message(&self, schema: &'static Schema) -> Option<Message<'a>> {
        let entries: &'a [Entry] = match &self.node.value {
            Value::Mapping(entries) => entries,
            Value::Null => &[],
            _ => return self.fail(format!("expected a mapping: {}", schema.short_name())),
        };
        let mut message = Message { field: self.clone(), schema, entries: Vec::with_capacity(entries.len()) };
        for entry in entries.iter().filter(|entry| entry.key != TYPE) {
            message.take(entry);
        }
        Some(message)
    }

    /// A message that carries the name of its type (`google.protobuf.Any`), out of the wrappers that some put around it.
    pub(crate) fn any(&self) -> Option<(&'a str, Self)> {
        let Some(url) = self.entry(TYPE) else {
            return self.fail("`@type` is missing; it says which message this is");
        };
        let name = type_name(url.text()?);
        if !name.ends_with(".TypedStruct") {
            return Some((name, self.clone()));
        }
        let Some(inner) = self.entry("type_url").or_else(|| self.entry("typeUrl")) else {
            return self.fail("`type_url` is missing; it says which message this is");
        };
        let name = type_name(inner.text()?);
        Some((name, self.entry("value").unwrap_or_else(|| self.clone())))
    }

    /// The entry of exactly this key, if this is a mapping that has it.
    pub(crate) fn entry(&self, key: &str) -> Option<Self> {
        let Value::Mapping(entries) = &self.node.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.child(entry))
    }

    fn child(&self, entry: &'a Entry) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{}", self.path, quote(&entry.key).trim_matches('`'));
        Self { reader: self.reader, node: &entry.value, path, line: entry.line }
    }
}

/// The key under which JSON has the type of an `Any`.
const TYPE: &str = "@type";

fn type_name(url: &str) -> &str {
    url.rsplit_once('/').map_or(url, |(_, name)| name)
}

/// A message whose fields are known.
pub(crate) struct Message<'a> {
    field: Field<'a>,
    schema: &'static Schema,
    entries: Vec<(Cow<'a, str>, Field<'a>)>,
}

impl<'a> Message<'a> {
    fn take(&mut self, entry: &'a Entry) {
        let field = self.field.child(entry);
        let name = snake_case(&entry.key);
        if self.entries.iter().any(|(known, _)| *known == name) {
            field.error("written twice; remove one");
            return;
        }
        let known = self.schema.field(&name);
        let policy = known.unwrap_or(self.schema.others);
        match policy {
            FieldPolicy::Read(_) | FieldPolicy::Accepted(_) => {}
            _ if is_default(&entry.value, policy) => {}
            FieldPolicy::Ignored(why) => {
                let kind = format!("{}.{name}", self.schema.name);
                field.warn(&kind, format!("ignored: {why}"));
            }
            FieldPolicy::Refused(why) => field.error(format!("refused: {why}")),
        }
        self.entries.push((name, field));
    }

    /// The value of this field, if it is there.
    pub(crate) fn get(&self, name: &'static str) -> Option<Field<'a>> {
        debug_assert!(
            matches!(self.schema.field(name), Some(FieldPolicy::Read(_))),
            "`{name}` is read but not in the schema of `{}`",
            self.schema.name
        );
        #[cfg(test)]
        crate::schema::coverage::note(self.schema.name, name);
        let (_, field) = self.entries.iter().find(|(known, _)| known == name)?;
        (!matches!(field.node.value, Value::Null)).then(|| field.clone())
    }

    /// The value of this field; its absence is a mistake.
    pub(crate) fn require(&self, name: &'static str) -> Option<Field<'a>> {
        let field = self.get(name);
        if field.is_none() {
            self.field.error(format!("`{name}` is missing"));
        }
        field
    }

    /// What `parser` makes of the value of this field, if it is there.
    pub(crate) fn read<T>(
        &self,
        name: &'static str,
        parser: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.get(name)?.parse(parser)
    }

    /// The items of a repeated field.
    pub(crate) fn list(&self, name: &'static str) -> Vec<Field<'a>> {
        self.get(name).map(|field| field.items()).unwrap_or_default()
    }

    /// A text field; absent is empty.
    pub(crate) fn string(&self, name: &'static str) -> String {
        self.get(name).and_then(|field| field.text()).unwrap_or_default().to_owned()
    }

    /// A boolean, wrapped or not; absent is false.
    pub(crate) fn flag(&self, name: &'static str) -> bool {
        self.read(name, crate::values::boolean).unwrap_or_default()
    }

    /// The only one of these fields that is there, with its name; two are a mistake.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Option<(&'static str, Field<'a>)> {
        let mut given = names.iter().filter_map(|&name| Some((name, self.get(name)?)));
        let first = given.next()?;
        if let Some((second, field)) = given.next() {
            field.error(format!(
                "`{}` is given too, and only one of them can hold; remove `{second}` or it",
                first.0
            ));
        }
        Some(first)
    }

    /// The message itself.
    pub(crate) fn field(&self) -> &Field<'a> {
        &self.field
    }
}

/// The name as the protocol has it, of one that may be written as its JSON has it.
pub(crate) fn snake_case(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return name.into();
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake.into()
}

/// Whether a value is the one that holds when nothing is said: writing it out changes nothing. A limit of zero may be one.
fn is_default(node: &Node, policy: FieldPolicy) -> bool {
    match &node.value {
        Value::Null => true,
        Value::Scalar(text) if matches!(policy, FieldPolicy::Refused(_)) => {
            matches!(text.as_str(), "" | "false")
        }
        Value::Scalar(text) => matches!(text.as_str(), "" | "false" | "0" | "0s"),
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(_) => false,
    }
}
