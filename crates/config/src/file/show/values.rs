//! What single values look like.

use crate::{model::Source, values::show_duration};
use serde_json::Value;
use std::{num::NonZeroUsize, time::Duration};

/// The path, or that there is none; never the bytes.
pub(super) fn source(source: &Source) -> Value {
    source.to_string().into()
}

/// As a file would say it, with the unit.
pub(super) fn time(value: Duration) -> Value {
    show_duration(value).into()
}

/// `auto` stands for one for each CPU.
pub(super) fn threads(count: Option<NonZeroUsize>) -> Value {
    count.map_or("auto".into(), |count| count.get().into())
}

/// `off` stands for what is switched off.
pub(super) fn or_off<T>(value: Option<&T>, shown: impl FnOnce(&T) -> Value) -> Value {
    value.map_or("off".into(), shown)
}

/// Adds a key to what is an object already, if the key has a value.
pub(super) fn put(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(key.to_owned(), value);
    }
}
