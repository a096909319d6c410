//! Messages in the configuration tree: their fields, and the policy for each.
//!
//! Names may be written as in the protocol (`poll_delay`) or as in its JSON format (`pollDelay`).

use crate::schema::{FieldPolicy, Schema};
pub(crate) use quadrille_config::Field;
use quadrille_config::{
    Dialect, Problem, Reader,
    model::Origin,
    yaml::{Entry, Node, Value},
};
use std::borrow::Cow;

/// Creates a reader for Envoy's and Istio's format, with this origin.
pub(crate) fn reader(origin: Origin) -> Reader {
    Reader::new(origin, Dialect::Protobuf)
}

/// Fields that contain messages.
pub(crate) trait ReadMessage<'a>: Sized {
    /// Reads a message of this schema; unknown fields are refused or ignored per the schema.
    fn message(&self, schema: &'static Schema) -> Option<Message<'a>>;

    /// Reads a message with a type name (`google.protobuf.Any`), unwrapping typed structs.
    fn any(&self) -> Option<(&'a str, Self)>;
}

impl<'a> ReadMessage<'a> for Field<'a> {
    fn message(&self, schema: &'static Schema) -> Option<Message<'a>> {
        let entries: &'a [Entry] = match &self.node().value {
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

    fn any(&self) -> Option<(&'a str, Self)> {
        let Some(url) = self.entry(TYPE) else {
            return self.fail(Problem::new("`@type` is missing", "it sets the message type"));
        };
        let name = type_name(url.text()?);
        if !name.ends_with(".TypedStruct") {
            return Some((name, self.clone()));
        }
        let Some(inner) = self.entry("type_url").or_else(|| self.entry("typeUrl")) else {
            return self.fail(Problem::new("`type_url` is missing", "it sets the message type"));
        };
        let name = type_name(inner.text()?);
        Some((name, self.entry("value").unwrap_or_else(|| self.clone())))
    }
}

/// JSON key of an `Any`'s type.
const TYPE: &str = "@type";

fn type_name(url: &str) -> &str {
    url.rsplit_once('/').map_or(url, |(_, name)| name)
}

/// A message whose fields have been checked.
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
            field.error(Problem::new("set twice", "remove one"));
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
            FieldPolicy::RefusedWith(why, remedy) => {
                field.error(Problem::new(format!("refused: {why}"), remedy));
            }
        }
        self.entries.push((name, field));
    }

    /// Returns the value of a field, if set.
    pub(crate) fn get(&self, name: &'static str) -> Option<Field<'a>> {
        debug_assert!(
            matches!(self.schema.field(name), Some(FieldPolicy::Read(_))),
            "`{name}` is read but not in the schema of `{}`",
            self.schema.name
        );
        #[cfg(test)]
        crate::schema::coverage::note(self.schema.name, name);
        let (_, field) = self.entries.iter().find(|(known, _)| known == name)?;
        (!matches!(field.node().value, Value::Null)).then(|| field.clone())
    }

    /// Returns the value of a required field.
    pub(crate) fn require(&self, name: &'static str) -> Option<Field<'a>> {
        let field = self.get(name);
        if field.is_none() {
            self.field.error(format!("`{name}` is missing"));
        }
        field
    }

    /// Returns the value of a field parsed by `parser`, if set.
    pub(crate) fn read<T>(
        &self,
        name: &'static str,
        parser: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        self.get(name)?.parse(parser)
    }

    /// Returns the items of a repeated field.
    pub(crate) fn list(&self, name: &'static str) -> Vec<Field<'a>> {
        self.get(name).map(|field| field.items()).unwrap_or_default()
    }

    /// Returns a text field; empty if omitted.
    pub(crate) fn string(&self, name: &'static str) -> String {
        self.get(name).and_then(|field| field.text()).unwrap_or_default().to_owned()
    }

    /// Returns a boolean field, wrapped or not; false if omitted.
    pub(crate) fn flag(&self, name: &'static str) -> bool {
        self.read(name, crate::values::boolean).unwrap_or_default()
    }

    /// Returns the only one of these fields that is set, with its name; two are an error.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Option<(&'static str, Field<'a>)> {
        let mut given = names.iter().filter_map(|&name| Some((name, self.get(name)?)));
        let first = given.next()?;
        if let Some((second, field)) = given.next() {
            field.error(Problem::new(
                format!("`{}` is also set, and only one of them is allowed", first.0),
                format!("remove `{second}` or the other"),
            ));
        }
        Some(first)
    }

    /// Returns the field that contains the message.
    pub(crate) fn field(&self) -> &Field<'a> {
        &self.field
    }
}

/// Converts a name from its JSON format to that of the protocol.
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

/// Returns whether a value is the default: writing it explicitly has no effect. A limit of zero may be one.
fn is_default(node: &Node, policy: FieldPolicy) -> bool {
    match &node.value {
        Value::Null => true,
        Value::Scalar(text) if matches!(policy, FieldPolicy::Refused(_) | FieldPolicy::RefusedWith(..)) => {
            matches!(text.as_str(), "" | "false")
        }
        Value::Scalar(text) => matches!(text.as_str(), "" | "false" | "0" | "0s"),
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(_) => false,
    }
}
