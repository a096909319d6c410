//! Fractions of requests.

use crate::{
    reader::{Field, ReadMessage},
    schema,
    values::{enumeration, number},
};
use quadrille_config::fraction;

/// Reads `envoy.type.v3.FractionalPercent`, in parts per million.
pub(crate) fn fraction(field: &Field<'_>) -> Option<u32> {
    const DENOMINATORS: &[(&str, u32, u32)] =
        &[("HUNDRED", 0, 10_000), ("TEN_THOUSAND", 1, 100), ("MILLION", 2, 1)];
    let message = field.message(&schema::FRACTIONAL_PERCENT)?;
    let numerator = match message.get("numerator") {
        Some(numerator) => numerator.parse(number)?,
        None => 0,
    };
    let unit = match message.get("denominator") {
        Some(denominator) => denominator.parse(enumeration(DENOMINATORS))?,
        None => 10_000,
    };
    Some(numerator.saturating_mul(unit).min(fraction::ALL))
}

/// Reads `envoy.config.core.v3.RuntimeFractionalPercent`: its default value.
pub(crate) fn runtime_fraction(field: &Field<'_>) -> Option<u32> {
    let message = field.message(&schema::RUNTIME_FRACTION)?;
    match message.get("default_value") {
        Some(value) => fraction(&value),
        None => Some(0),
    }
}
