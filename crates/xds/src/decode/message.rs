//! Decodes a message and its fields by its descriptor.

use super::{
    budget::Budget,
    descriptors,
    error::{Fault, shortened},
    tree::{bare, base64, entry, mapping, number_of, scalar, text},
    well_known::{Form, duration},
    wire::{self, Fields, Packed, Raw},
};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use quadrille_config::yaml::{Entry, Node, Position, Value};

/// Decoder of messages, which tracks the current path for error messages.
pub(super) struct Reader<'b> {
    pub(super) budget: &'b mut Budget,
    pub(super) unknown: Vec<String>,
    pub(super) path: Vec<PathSegment>,
}

/// A segment of a path.
pub(super) enum PathSegment {
    Field(FieldDescriptor),
    Index(usize),
    Key(String),
}

impl Reader<'_> {
    /// Decodes a message and puts its type first: a resource, or the content of an `Any`.
    pub(super) fn typed(
        &mut self,
        url: &str,
        descriptor: &MessageDescriptor,
        bytes: &[u8],
    ) -> Result<Node, Fault> {
        let node = self.message(descriptor, bytes)?;
        let kind = entry("@type", text(url));
        let mut entries = vec![kind];
        match node.value {
            Value::Mapping(fields) if Form::of_message(descriptor).is_none() => entries.extend(fields),
            value => entries.push(entry("value", bare(value))),
        }
        Ok(mapping(entries))
    }

    /// Decodes a message of any type.
    fn message(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        self.budget.spend(1)?;
        if self.budget.depth == 0 {
            return Err(Fault::TooDeep);
        }
        self.budget.depth -= 1;
        let node = match Form::of_message(descriptor) {
            Some(form) => self.well_known(form, descriptor, bytes),
            None => self.fields(descriptor, bytes).map(mapping),
        };
        self.budget.depth += 1;
        node
    }

    /// Decodes the fields of a message without a special form.
    fn fields(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Vec<Entry>, Fault> {
        let mut open: Vec<OpenField> = Vec::new();
        let mut fields = Fields(bytes);
        while let Some((number, raw)) = fields.next()? {
            self.budget.spend(1)?;
            match open.iter_mut().position(|open| open.field.number() == number) {
                Some(known) => self.add(&mut open[known], raw)?,
                None => match descriptor.get_field(number) {
                    Some(field) => {
                        let mut first = OpenField { field, value: None };
                        self.add(&mut first, raw)?;
                        self.check_oneof(&first, &open)?;
                        open.push(first);
                    }
                    None => self.note_unknown(number),
                },
            }
        }
        open.into_iter().map(OpenField::close).collect()
    }

    /// Adds one occurrence of a field.
    fn add(&mut self, open: &mut OpenField, raw: Raw<'_>) -> Result<(), Fault> {
        let field = &open.field;
        self.path.push(PathSegment::Field(field.clone()));
        if field.is_map() {
            let item = self.map_entry(field, raw)?;
            entries_of(&mut open.value).push(item);
        } else if field.is_list() {
            match (packed(&field.kind()), raw) {
                (Some(like), Raw::Bytes(mut bytes)) => {
                    while let Some(raw) = wire::unpack(&mut bytes, like)? {
                        self.budget.spend(1)?;
                        let item = self.single(field, raw)?;
                        items_of(&mut open.value).push(item);
                    }
                }
                _ => {
                    let index = items_of(&mut open.value).len();
                    self.path.push(PathSegment::Index(index));
                    let item = self.single(field, raw)?;
                    items_of(&mut open.value).push(item);
                    self.path.pop();
                }
            }
        } else {
            if open.value.is_some() {
                return Err(Fault::Twice);
            }
            open.value = Some(self.single(field, raw)?.value);
        }
        self.path.pop();
        Ok(())
    }

    fn map_entry(&mut self, field: &FieldDescriptor, raw: Raw<'_>) -> Result<Entry, Fault> {
        let Kind::Message(descriptor) = field.kind() else { return Err(wrong(field)) };
        let Raw::Bytes(bytes) = raw else { return Err(wrong(field)) };
        let (mut key, mut value) = (None, None);
        let mut fields = Fields(bytes);
        while let Some((number, raw)) = fields.next()? {
            self.budget.spend(1)?;
            match number {
                1 if key.is_none() => {
                    let single = self.single(&descriptor.map_entry_key_field(), raw)?;
                    key = single.text().map(str::to_owned);
                    self.path.push(PathSegment::Key(key.clone().unwrap_or_default()));
                }
                2 if value.is_none() => {
                    value = Some(self.single(&descriptor.map_entry_value_field(), raw)?);
                }
                1 | 2 => return Err(Fault::Twice),
                _ => return Err(Fault::Malformed("a map entry has fields besides key and value")),
            }
        }
        if key.is_some() {
            self.path.pop();
        }
        let value = match value {
            Some(value) => value,
            None => self.absent(&descriptor.map_entry_value_field())?,
        };
        let key = key.or_else(|| default_key(&descriptor.map_entry_key_field()));
        Ok(Entry { key: key.unwrap_or_default(), position: Position::NONE, value })
    }

    /// Returns the default value for a map entry without a value.
    fn absent(&mut self, field: &FieldDescriptor) -> Result<Node, Fault> {
        let zero = match field.kind() {
            Kind::Message(_) | Kind::String | Kind::Bytes => Raw::Bytes(&[]),
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Raw::Fixed64(0),
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Raw::Fixed32(0),
            _ => Raw::Varint(0),
        };
        self.single(field, zero)
    }

    /// Decodes one value of a field.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // protobuf defines it so
    fn single(&mut self, field: &FieldDescriptor, raw: Raw<'_>) -> Result<Node, Fault> {
        Ok(match (field.kind(), raw) {
            (Kind::Message(descriptor), Raw::Bytes(bytes)) => self.message(&descriptor, bytes)?,
            (Kind::String, Raw::Bytes(bytes)) => {
                text(std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?)
            }
            (Kind::Bytes, Raw::Bytes(bytes)) => scalar(base64(bytes)),
            (Kind::Enum(descriptor), Raw::Varint(number)) => enum_value(&descriptor, number as i32),
            (Kind::Bool, Raw::Varint(number)) => text(if number == 0 { "false" } else { "true" }),
            (Kind::Int32, Raw::Varint(number)) => number_of(number as i32),
            (Kind::Int64, Raw::Varint(number)) => number_of(number as i64),
            (Kind::Uint32, Raw::Varint(number)) => number_of(number as u32),
            (Kind::Uint64, Raw::Varint(number)) => number_of(number),
            (Kind::Sint32, Raw::Varint(number)) => number_of(zigzag(number) as i32),
            (Kind::Sint64, Raw::Varint(number)) => number_of(zigzag(number)),
            (Kind::Fixed32, Raw::Fixed32(number)) => number_of(number),
            (Kind::Sfixed32, Raw::Fixed32(number)) => number_of(number as i32),
            (Kind::Fixed64, Raw::Fixed64(number)) => number_of(number),
            (Kind::Sfixed64, Raw::Fixed64(number)) => number_of(number as i64),
            (Kind::Float, Raw::Fixed32(bits)) => number_of(f32::from_bits(bits)),
            (Kind::Double, Raw::Fixed64(bits)) => number_of(f64::from_bits(bits)),
            _ => return Err(wrong(field)),
        })
    }

    /// Checks that a message contains at most one field of a oneof.
    fn check_oneof(&mut self, first: &OpenField, open: &[OpenField]) -> Result<(), Fault> {
        let Some(oneof) = first.field.containing_oneof() else { return Ok(()) };
        if open.iter().any(|other| other.field.containing_oneof().as_ref() == Some(&oneof)) {
            self.path.push(PathSegment::Field(first.field.clone()));
            return Err(Fault::Twice);
        }
        Ok(())
    }

    fn note_unknown(&mut self, number: u32) {
        const MAX: usize = 8;
        if self.unknown.len() < MAX {
            let path = self.path_text();
            let colon = if path.is_empty() { "" } else { ": " };
            self.unknown.push(format!("{path}{colon}field {number}"));
        }
    }

    /// Decodes a message with a special form.
    fn well_known(
        &mut self,
        form: Form,
        descriptor: &MessageDescriptor,
        bytes: &[u8],
    ) -> Result<Node, Fault> {
        match form {
            Form::Any => self.any(descriptor, bytes),
            Form::Duration => duration(bytes),
            Form::Wrapper => self.wrapper(descriptor, bytes),
            Form::Struct => self.structure(descriptor, bytes),
            Form::List => self.list(descriptor, bytes),
            Form::Value => self.value(descriptor, bytes),
        }
    }

    /// Decodes the content of an `Any`, with its type first.
    fn any(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        let (mut url, mut held) = (None, None);
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            match field {
                (1, Raw::Bytes(bytes)) if url.is_none() => {
                    url = Some(std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?);
                }
                (2, Raw::Bytes(bytes)) if held.is_none() => held = Some(bytes),
                (1 | 2, Raw::Bytes(_)) => return Err(Fault::Twice),
                _ => return Err(Fault::WrongType(descriptor.full_name().to_owned())),
            }
        }
        let (url, held) = (url.unwrap_or_default(), held.unwrap_or_default());
        match descriptors::message_of(url) {
            Some(descriptor) => self.typed(url, &descriptor, held),
            None => Ok(mapping(vec![entry("@type", text(url)), entry("value", scalar(base64(held)))])),
        }
    }

    /// Decodes a wrapper as its value, which is present even if it is zero.
    fn wrapper(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        match self.fields(descriptor, bytes)?.pop() {
            Some(field) => Ok(field.value),
            None => Ok(match descriptor.get_field(1).map(|field| field.kind()) {
                Some(Kind::String | Kind::Bytes) | None => text(""),
                Some(Kind::Bool) => text("false"),
                Some(_) => number_of(0),
            }),
        }
    }

    fn structure(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        let fields = self.fields(descriptor, bytes)?.pop();
        match fields.map(|field| field.value.value) {
            Some(Value::Mapping(entries)) => Ok(mapping(entries)),
            _ => Ok(mapping(Vec::new())),
        }
    }

    fn list(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        let items = self.fields(descriptor, bytes)?.pop();
        Ok(items.map_or(bare(Value::Sequence(Vec::new())), |field| field.value))
    }

    fn value(&mut self, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
        let null = bare(Value::Null);
        match self.fields(descriptor, bytes)?.pop() {
            Some(field) if field.key == "null_value" => Ok(null),
            Some(field) => Ok(field.value),
            None => Ok(null),
        }
    }

    /// Returns the current path.
    pub(super) fn path_text(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                PathSegment::Field(field) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    path.push_str(dot);
                    path.push_str(field.name());
                }
                PathSegment::Index(index) => path.push_str(&format!("[{index}]")),
                PathSegment::Key(key) => path.push_str(&format!("[\"{}\"]", shortened(key))),
            }
        }
        path
    }
}

/// A field of which at least one occurrence was read.
struct OpenField {
    field: FieldDescriptor,
    value: Option<Value>,
}

impl OpenField {
    fn close(self) -> Result<Entry, Fault> {
        // Only a packed field can be present and empty.
        let value = self.value.unwrap_or(Value::Sequence(Vec::new()));
        if let (true, Value::Mapping(entries)) = (self.field.is_map(), &value) {
            refuse_duplicates(entries)?;
        }
        Ok(Entry { key: self.field.name().to_owned(), position: Position::NONE, value: bare(value) })
    }
}

/// Rejects duplicate keys of a map.
fn refuse_duplicates(entries: &[Entry]) -> Result<(), Fault> {
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) { Err(Fault::Twice) } else { Ok(()) }
}

fn entries_of(value: &mut Option<Value>) -> &mut Vec<Entry> {
    match value.get_or_insert_with(|| Value::Mapping(Vec::new())) {
        Value::Mapping(entries) => entries,
        _ => unreachable!("nothing else puts a value into a map's field"),
    }
}

fn items_of(value: &mut Option<Value>) -> &mut Vec<Node> {
    match value.get_or_insert_with(|| Value::Sequence(Vec::new())) {
        Value::Sequence(items) => items,
        _ => unreachable!("nothing else puts a value into a repeated field"),
    }
}

/// Returns the packed encoding of a repeated field of this kind, if there is one.
fn packed(kind: &Kind) -> Option<Packed> {
    Some(match kind {
        Kind::Message(_) | Kind::String | Kind::Bytes => return None,
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Packed::Fixed64,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Packed::Fixed32,
        _ => Packed::Varint,
    })
}

fn default_key(field: &FieldDescriptor) -> Option<String> {
    Some(match field.kind() {
        Kind::String => String::new(),
        Kind::Bool => "false".to_owned(),
        _ => "0".to_owned(),
    })
}

fn enum_value(descriptor: &EnumDescriptor, number: i32) -> Node {
    match descriptor.get_value(number) {
        Some(value) => text(value.name()),
        None => number_of(number),
    }
}

#[allow(clippy::cast_possible_wrap)] // protobuf defines it so
fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn wrong(field: &FieldDescriptor) -> Fault {
    Fault::WrongType(field.name().to_owned())
}
