//! Messages that have a form of their own in JSON and YAML, and with it here.

use super::{
    Fault,
    message::{Reader, base64, entry, mapping, number_of, scalar, text},
    wire::{Fields, Raw},
};
use crate::kind::TYPE_PREFIX;
use prost_reflect::{Kind, MessageDescriptor};
use quadrille_config::yaml::{Node, Value};

/// The type of a URL, if it is known.
pub(super) fn message_of(url: &str) -> Option<MessageDescriptor> {
    super::descriptors().get_message_by_name(url.strip_prefix(TYPE_PREFIX)?)
}

/// Whether its JSON form is not the mapping of its fields: an `Any` puts such a value under `value`.
pub(super) fn is_one(descriptor: &MessageDescriptor) -> bool {
    Form::of(descriptor).is_some()
}

/// The tree of such a message; `None` if it is not one.
pub(super) fn read(
    reader: &mut Reader<'_>,
    descriptor: &MessageDescriptor,
    bytes: &[u8],
) -> Option<Result<Node, Fault>> {
    Some(match Form::of(descriptor)? {
        Form::Any => any(reader, descriptor, bytes),
        Form::Duration => duration(bytes),
        Form::Wrapper => wrapper(reader, descriptor, bytes),
        Form::Struct => structure(reader, descriptor, bytes),
        Form::List => list(reader, descriptor, bytes),
        Form::Value => value(reader, descriptor, bytes),
    })
}

enum Form {
    Any,
    Duration,
    Wrapper,
    Struct,
    List,
    Value,
}

impl Form {
    fn of(descriptor: &MessageDescriptor) -> Option<Self> {
        Some(match descriptor.full_name().strip_prefix("google.protobuf.")? {
            "Any" => Self::Any,
            "Duration" => Self::Duration,
            "Struct" => Self::Struct,
            "ListValue" => Self::List,
            "Value" => Self::Value,
            name if name.ends_with("Value") => Self::Wrapper,
            _ => return None,
        })
    }
}

/// What it holds, with its type in front.
fn any(reader: &mut Reader<'_>, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
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
    match message_of(url) {
        Some(descriptor) => reader.typed(url, &descriptor, held),
        None => Ok(mapping(vec![entry("@type", text(url)), entry("value", scalar(base64(held)))])),
    }
}

/// `1.5s`
#[allow(clippy::cast_possible_wrap)] // protobuf defines it so
fn duration(bytes: &[u8]) -> Result<Node, Fault> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Fields(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (1, Raw::Varint(number)) => seconds = number as i64,
            (2, Raw::Varint(number)) => nanos = number as i64,
            _ => return Err(Fault::Meaningless("not a duration")),
        }
    }
    // google/protobuf/duration.proto
    let in_range = seconds.unsigned_abs() <= 315_576_000_000 && nanos.unsigned_abs() <= 999_999_999;
    if !in_range || (seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0) {
        return Err(Fault::Meaningless("a duration out of range"));
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = format!("{:09}", nanos.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Ok(scalar(format!("{sign}{}{dot}{fraction}s", seconds.unsigned_abs())))
}

/// The value alone; it is there even if it is zero.
fn wrapper(reader: &mut Reader<'_>, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
    match reader.fields(descriptor, bytes)?.pop() {
        Some(field) => Ok(field.value),
        None => Ok(match descriptor.get_field(1).map(|field| field.kind()) {
            Some(Kind::String | Kind::Bytes) | None => text(""),
            Some(Kind::Bool) => text("false"),
            Some(_) => number_of(0),
        }),
    }
}

fn structure(reader: &mut Reader<'_>, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
    let fields = reader.fields(descriptor, bytes)?.pop();
    match fields.map(|field| field.value.value) {
        Some(Value::Mapping(entries)) => Ok(mapping(entries)),
        _ => Ok(mapping(Vec::new())),
    }
}

fn list(reader: &mut Reader<'_>, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
    let items = reader.fields(descriptor, bytes)?.pop();
    Ok(items.map_or(Node { line: 0, value: Value::Sequence(Vec::new()) }, |field| field.value))
}

fn value(reader: &mut Reader<'_>, descriptor: &MessageDescriptor, bytes: &[u8]) -> Result<Node, Fault> {
    let null = Node { line: 0, value: Value::Null };
    match reader.fields(descriptor, bytes)?.pop() {
        Some(field) if field.key == "null_value" => Ok(null),
        Some(field) => Ok(field.value),
        None => Ok(null),
    }
}
