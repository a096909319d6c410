//! Values that name files or other parts of the configuration.

use crate::{
    Field, Problem,
    model::{Place, Source},
    suggest::{nearest, quote},
    values,
};
use std::path::PathBuf;

impl Field<'_> {
    /// Overwrites `value` with the parsed text of this field.
    pub(super) fn set<T>(&self, value: &mut T, parser: impl FnOnce(&str) -> Result<T, Problem>) {
        if let Some(parsed) = self.parse(parser) {
            *value = parsed;
        }
    }

    /// Reads the path of a file, relative to the directory of the configuration.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let path = self.parse(values::file)?;
        Some(self.origin().directory().join(path))
    }

    /// Reads the path of a file as a source.
    pub(super) fn file_source(&self) -> Option<Source> {
        self.file().map(Source::File)
    }

    /// Reads this field with `read`, and adds its place.
    pub(super) fn placed<T>(&self, read: impl FnOnce(&Self) -> Option<T>) -> Option<(T, Place)> {
        read(self).map(|value| (value, self.place()))
    }

    /// Reads the path of a PEM file, or the PEM text itself.
    pub(super) fn pem(&self) -> Option<Source> {
        let text = self.text()?;
        if !text.contains("-----BEGIN") {
            return self.file().map(Source::File);
        }
        if !text.trim().contains('\n') {
            return self.fail(Problem::new(
                "PEM text must keep its line breaks",
                "begin it with `|` on the line of the key",
            ));
        }
        Some(Source::inline(text))
    }

    /// Returns the items of a list, or a single value as a list of one item.
    pub(super) fn items_or_one(&self) -> Vec<Self> {
        if self.is_scalar() { vec![self.clone()] } else { self.items() }
    }

    /// Reads the name of an upstream, which is looked up when the whole file has been read.
    pub(super) fn upstream_name(&self) -> Option<String> {
        let name = self.text()?.to_owned();
        self.refer_to(&name);
        Some(name)
    }
}

/// Returns the mistake for the name of an upstream that is not among the `known` ones.
pub(super) fn unknown_upstream(name: &str, known: &[&str]) -> Problem {
    let quoted = quote(name);
    if let Some(near) = nearest(name, known.iter().copied()) {
        return Problem::new(format!("there is no upstream {quoted}"), format!("did you mean `{near}`?"));
    }
    match known {
        [] => Problem::new(format!("there is no upstream {quoted}"), "add it to `upstreams`"),
        _ => {
            Problem::new(format!("there is no upstream {quoted}"), format!("known are {}", known.join(", ")))
        }
    }
}
