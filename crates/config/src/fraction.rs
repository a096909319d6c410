//! Shares of requests in parts per million, written as percentages.

use crate::model::Problem;

/// All requests.
pub const ALL: u32 = 1_000_000;

/// Parts per million in one percent.
const PERCENT: f64 = ALL as f64 / 100.0;

/// Parses a percentage into parts per million.
pub(crate) fn percentage(text: &str) -> Result<u32, Problem> {
    let parts = text.parse::<f64>().ok().map(|percent| (percent * PERCENT).round());
    // Numbers that are in range fit.
    let parts = parts.filter(|parts| (1.0..=f64::from(ALL)).contains(parts)).map(|parts| parts as u32);
    parts.ok_or_else(|| {
        Problem::new(format!("`{text}` is not a percentage"), "write a number from 0.0001 to 100")
    })
}

/// Returns the share as a percentage.
pub(crate) fn show(parts: u32) -> f64 {
    f64::from(parts) / PERCENT
}
