//! Scalar values in protobuf's JSON format, and in common notations.

use quadrille_config::{Problem, quote, values};
use std::time::Duration;

/// Parses `0.010s` as in protobuf's JSON format, or `10ms`; zero in any form.
pub(crate) fn duration(text: &str) -> Result<Duration, Problem> {
    if text.starts_with('-') {
        return Err(format!("{} is a negative duration", quote(text)).into());
    }
    values::duration(text)
}

/// Parses `true` or `false`.
pub(crate) fn boolean(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{} is not `true` or `false`", quote(text)).into()),
    }
}

/// Parses a whole number, which JSON may quote or write with `.0`.
pub(crate) fn number(text: &str) -> Result<u32, Problem> {
    let digits = text.strip_suffix(".0").unwrap_or(text);
    digits.parse().map_err(|_| format!("{} is not a whole number from 0 to {}", quote(text), u32::MAX).into())
}

/// Parses an enumeration value, by its name or its number.
pub(crate) fn enumeration<T: Copy>(table: &[(&str, u32, T)]) -> impl FnOnce(&str) -> Result<T, Problem> {
    move |text| {
        let found = table.iter().find(|(name, number, _)| *name == text || number.to_string() == text);
        found.map(|(_, _, value)| *value).ok_or_else(|| {
            let names: Vec<_> = table.iter().map(|(name, ..)| *name).collect();
            Problem::new(
                format!("{} is not supported here", quote(text)),
                format!("use {}", names.join(", ")),
            )
        })
    }
}
