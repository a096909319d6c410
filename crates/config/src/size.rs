//! Text format of sizes in bytes.

use crate::{
    fraction,
    model::{MemorySize, Problem},
    suggest::quote,
};
use std::num::NonZeroUsize;

/// Parses a size with its unit (`KiB`, `MiB`, `GiB`): `64KiB`; plain digits are bytes.
pub fn size(text: &str) -> Result<usize, Problem> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = SIZES.iter().find(|(unit, _)| *unit == &text[digits.len()..]);
    let size = unit.and_then(|(_, unit)| digits.parse::<usize>().ok()?.checked_mul(*unit));
    size.ok_or_else(|| {
        let remedy = match meant(digits, &text[digits.len()..]) {
            Some(meant) => format!("write `{meant}`"),
            None => "write digits with a unit, such as `64KiB`".to_owned(),
        };
        Problem::new(format!("{} is not a size", quote(text)), remedy)
    })
}

/// Returns the size that a text with another spelling of the unit means, such as `10m` of nginx.
fn meant(digits: &str, unit: &str) -> Option<String> {
    digits.parse::<usize>().ok()?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let unit = match unit.as_str() {
        "b" => "",
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        "g" | "gb" | "gib" => "GiB",
        _ => return None,
    };
    Some(format!("{digits}{unit}"))
}

/// Returns the shortest text that [`size`] reads as this value.
pub fn show_size(value: usize) -> String {
    let fits = |unit: &&(&str, usize)| value != 0 && value.is_multiple_of(unit.1);
    match SIZES.iter().rev().find(fits) {
        Some((unit, size)) => format!("{}{unit}", value / size),
        None => value.to_string(),
    }
}

/// Returns the text of an optional limit; `off` for no limit.
pub(crate) fn show_size_or_off(limit: Option<u64>) -> String {
    limit.and_then(|limit| usize::try_from(limit).ok()).map_or("off".into(), show_size)
}

const SIZES: [(&str, usize); 4] = [("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Parses the maximum size of a request's header.
pub fn header_limit(text: &str) -> Result<usize, Problem> {
    match size(text)? {
        limit if limit < 4 << 10 => {
            Err(Problem::new("browsers' headers take several KiB", "write `4KiB` or more"))
        }
        limit if limit > 8 << 20 => Err(Problem::new(
            format!("{} of memory for each connection is too much", quote(text)),
            "write `8MiB` or less",
        )),
        limit => Ok(limit),
    }
}

/// Parses the maximum length of a URL.
pub fn url_limit(text: &str) -> Result<usize, Problem> {
    match size(text)? {
        limit if limit < 256 => {
            Err(Problem::new("links of ordinary pages are longer than that", "write `256` or more"))
        }
        limit => Ok(limit),
    }
}

/// Parses the maximum size of a request's body; `off` for any size.
pub fn body_limit(text: &str) -> Result<Option<u64>, Problem> {
    if matches!(text, "off" | "false" | "no") {
        return Ok(None);
    }
    match size(text)? {
        // In nginx, 0 means no limit.
        0 => Err(Problem::new("`0` would refuse every body", "write `off` for bodies of any size")),
        limit => Ok(Some(limit as u64)),
    }
}

/// Least limit on the memory of the process: a gateway without clients takes a good part of it.
const LEAST_MEMORY: usize = 64 << 20;

/// Parses the maximum memory of the process: a size, a percentage of the available memory, or `off`.
pub fn memory_limit(text: &str) -> Result<MemorySize, Problem> {
    if matches!(text, "off" | "false" | "no") {
        return Ok(MemorySize::Unlimited);
    }
    if let Some(percent) = text.strip_suffix('%') {
        return fraction::percentage(percent).map(MemorySize::Share);
    }
    match NonZeroUsize::new(size(text)?) {
        Some(limit) if limit.get() >= LEAST_MEMORY => Ok(MemorySize::Bytes(limit)),
        _ => Err(Problem::new(
            format!("with {}, a gateway would refuse its first requests", quote(text)),
            "write `64MiB` or more, or a percentage such as `80%`",
        )),
    }
}

/// Returns the text that [`memory_limit`] reads as this value.
pub(crate) fn show_memory_limit(limit: MemorySize) -> String {
    match limit {
        MemorySize::Unlimited => "off".into(),
        MemorySize::Bytes(bytes) => show_size(bytes.get()),
        MemorySize::Share(parts) => format!("{}%", fraction::show(parts)),
    }
}
