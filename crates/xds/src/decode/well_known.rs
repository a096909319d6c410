//! Messages with a special form in JSON and YAML, and thus in trees.

use super::{
    error::Fault,
    tree::scalar,
    wire::{Fields, Raw},
};
use prost_reflect::MessageDescriptor;
use quadrille_config::yaml::Node;

/// Special form of a message.
pub(super) enum Form {
    Any,
    Duration,
    Wrapper,
    Struct,
    List,
    Value,
}

impl Form {
    /// Returns the special form of a message; `None` if it is a mapping of its fields.
    pub(super) fn of_message(descriptor: &MessageDescriptor) -> Option<Self> {
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

/// Decodes a duration to text: `1.5s`.
#[allow(clippy::cast_possible_wrap)] // protobuf defines it so
pub(super) fn duration(bytes: &[u8]) -> Result<Node, Fault> {
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
        return Err(Fault::Meaningless("the duration is out of range"));
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = format!("{:09}", nanos.unsigned_abs());
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Ok(scalar(format!("{sign}{}{dot}{fraction}s", seconds.unsigned_abs())))
}
