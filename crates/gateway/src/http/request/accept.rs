//! `Accept` and `Accept-Encoding` negotiation (q-values, RFC 9110 section 12.4.2).

use crate::header_list;
use http::{HeaderMap, HeaderName};

/// Iterates over the elements of a header such as `Accept`, without parameters, each with its q-value in thousandths.
pub(crate) fn qualities<'a>(
    headers: &'a HeaderMap,
    name: HeaderName,
) -> impl Iterator<Item = (&'a str, u16)> + use<'a> {
    header_list::members(headers, name).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().filter(|named| !named.is_empty())?;
        let weight = |part: &'a str| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
        Some((named, parts.find_map(weight).map_or(1000, thousandths)))
    })
}

/// Parses a q-value: `0.8` is 800, and a malformed value is 0.
fn thousandths(quality: &str) -> u16 {
    let quality = quality.parse::<f32>().unwrap_or(0.0);
    if (0.0..=1.0).contains(&quality) { (quality * 1000.0) as u16 } else { 0 }
}
