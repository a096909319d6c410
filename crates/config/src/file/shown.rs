//! Formats of single values on the page `/config`. Null stands for a key that would not be written.

use crate::{
    model::{Place, Source},
    values::show_duration,
};
use serde_json::Value;
use std::{num::NonZeroUsize, time::Duration};

/// Shows the path, or that the source is inline; never the bytes.
pub(super) fn source(source: &Source) -> Value {
    source.to_string().into()
}

/// Shows a source, if there is one.
pub(super) fn placed_source(placed: Option<&(Source, Place)>) -> Value {
    placed.map(|(shown, _)| source(shown)).into()
}

/// Shows a duration with its unit, as in a file.
pub(super) fn time(value: Duration) -> Value {
    show_duration(value).into()
}

/// Shows a number of threads; `auto` stands for one for each CPU.
pub(super) fn threads(count: Option<NonZeroUsize>) -> Value {
    count.map_or("auto".into(), |count| count.get().into())
}

/// Shows an optional value; `off` if missing.
pub(super) fn or_off<T>(value: Option<&T>, shown: impl FnOnce(&T) -> Value) -> Value {
    value.map_or("off".into(), shown)
}

/// Shows a switch whose default is off.
pub(super) fn if_true(on: bool) -> Value {
    on.then_some(true).into()
}

/// Shows a list whose default is empty.
pub(super) fn list(items: impl Iterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(items).into()
}

/// Shows a text whose default is empty.
pub(super) fn text(text: &str) -> Value {
    (!text.is_empty()).then_some(text).into()
}

/// Adds settings that only other front ends have, and no key of the file, to an object.
pub(super) fn put<const N: usize>(object: &mut Value, entries: [(&str, Value); N]) {
    let written = entries.into_iter().filter(|(_, value)| !value.is_null());
    if let Some(object) = object.as_object_mut() {
        object.extend(written.map(|(key, value)| (key.to_owned(), value)));
    }
}
