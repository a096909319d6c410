//! The fault filter's per-route settings.

use crate::{
    fraction::fraction,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, model::Fault, values::status};
use std::time::Duration;

/// Reads `envoy.extensions.filters.http.fault.v3.HTTPFault`; `Some(None)` if it has no effect.
pub(crate) fn fault(field: &Field<'_>) -> Option<Option<Fault>> {
    let message = field.message(&schema::HTTP_FAULT)?;
    let fault = Fault {
        delay: match message.get("delay") {
            Some(delay) => Some(read_delay(&delay)?),
            None => None,
        },
        abort: match message.get("abort") {
            Some(abort) => Some(read_abort(&abort)?),
            None => None,
        },
    };
    Some((fault != Fault::default()).then_some(fault))
}

fn read_delay(field: &Field<'_>) -> Option<(Duration, u32)> {
    let message = field.message(&schema::FAULT_DELAY)?;
    match message.duration("fixed_delay") {
        Some(delay) => Some((delay, share(&message)?)),
        None => field.fail(Problem::new("`fixed_delay` is missing", "write a duration")),
    }
}

fn read_abort(field: &Field<'_>) -> Option<(u16, u32)> {
    let message = field.message(&schema::FAULT_ABORT)?;
    match message.get("http_status") {
        Some(found) => Some((found.parse(status)?, share(&message)?)),
        None => field.fail(Problem::new("`http_status` is missing", "write a status from 200 to 599")),
    }
}

/// Reads the percentage; without it, no request is affected.
fn share(message: &Message<'_>) -> Option<u32> {
    match message.get("percentage") {
        Some(percentage) => fraction(&percentage),
        None => Some(0),
    }
}
