//! What single values look like on the page `/config`. Null stands for what would not be written.

use crate::{
    model::{Place, Source},
    values::show_duration,
};
use serde_json::Value;
use std::{num::NonZeroUsize, time::Duration};

/// The path, or that there is none; never the bytes.
pub(super) fn source(source: &Source) -> Value {
    source.to_string().into()
}

/// The same, if there is one.
pub(super) fn placed_source(placed: Option<&(Source, Place)>) -> Value {
    placed.map(|(shown, _)| source(shown)).into()
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

/// A switch that is off when nothing is said.
pub(super) fn if_true(on: bool) -> Value {
    on.then_some(true).into()
}

/// A list that is empty when nothing is said.
pub(super) fn list(items: impl Iterator<Item = Value>) -> Value {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(items).into()
}

/// A text that is empty when nothing is said.
pub(super) fn text(text: &str) -> Value {
    (!text.is_empty()).then_some(text).into()
}

/// Adds what no key of the file says, and other front ends do, to what is an object already.
pub(super) fn put<const N: usize>(object: &mut Value, entries: [(&str, Value); N]) {
    let written = entries.into_iter().filter(|(_, value)| !value.is_null());
    if let Some(object) = object.as_object_mut() {
        object.extend(written.map(|(key, value)| (key.to_owned(), value)));
    }
}
