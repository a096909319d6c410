//! Retries of failed requests.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    model::{RetryOn, RetryPolicy},
    suggest::quote,
    values,
};
use serde_json::Value;
use std::num::NonZeroU32;

pub(super) const RETRY: Section<RetryPolicy> = Section {
    path: "listeners[].routes[].retry",
    about: "Retries of failed requests, in place of the upstream's `retries`. A request can be retried while its \
            body, of up to 96 KiB, is still buffered.",
    keys: &[
        Key::new(
            "on",
            "list of `connect-failure`, `refused-stream`, `reset`, `gateway-error`, `5xx`, `conflict`, statuses",
            Preset::Required,
            "The failures that are retried. In this order: no connection; refused by HTTP/2; no response; 502 \
                    to 504 or no response; 500 and above or no response; 409; these statuses.",
            |field, retry| failures(field, &mut retry.on),
            |retry| show_failures(&retry.on),
        ),
        Key::new(
            "retries",
            "count",
            Preset::Is("1"),
            "Maximum number of attempts after the first, each after an increasing pause. More \
                    attempts make an overload worse.",
            |field, retry| {
                field.set(&mut retry.retries, |text| values::weight(text).map(NonZeroU32::get));
            },
            |retry| retry.retries.into(),
        ),
        Key::new(
            "per_try_timeout",
            "duration",
            Preset::Means("none of its own"),
            "Time limit of one attempt, until the header of the response.",
            |field, retry| retry.per_try_timeout = field.parse(values::timeout),
            |retry| retry.per_try_timeout.map(time).into(),
        ),
        Key::new(
            "idempotent_only",
            "`on` or `off`",
            Preset::Is("on"),
            "Repeat a request that a server may have received only if its method is idempotent (RFC 9110). \
                    With `off`, a server may process a request twice.",
            |field, retry| field.set(&mut retry.idempotent_only, switch),
            |retry| retry.idempotent_only.into(),
        ),
    ],
};

/// Reads a retry policy.
pub(super) fn retry(field: &Field<'_>) -> Option<RetryPolicy> {
    let mut policy = RetryPolicy {
        on: RetryOn::default(),
        retries: 1,
        per_try_timeout: None,
        idempotent_only: true,
        backoff: true,
    };
    RETRY.read(field, &mut policy)?;
    Some(policy)
}

fn failures(field: &Field<'_>, on: &mut RetryOn) {
    for item in field.items() {
        let _ = item.parse(|text| failure(on, text));
    }
}

fn failure(on: &mut RetryOn, text: &str) -> Result<(), Problem> {
    match text {
        "connect-failure" => on.connect_failure = true,
        "refused-stream" => on.refused_stream = true,
        "reset" => on.reset = true,
        "gateway-error" => on.gateway_error = true,
        "5xx" => on.server_error = true,
        "conflict" => on.conflict = true,
        _ => on.statuses.push(values::status(text).map_err(|_| {
            Problem::new(format!("{} is not a failure", quote(text)), "known are `connect-failure`, `refused-stream`, `reset`, `gateway-error`, `5xx`, `conflict` and statuses")
        })?),
    }
    Ok(())
}

fn show_failures(on: &RetryOn) -> Value {
    let words = [
        ("connect-failure", on.connect_failure),
        ("refused-stream", on.refused_stream),
        ("reset", on.reset),
        ("5xx", on.server_error),
        ("gateway-error", on.gateway_error),
        ("conflict", on.conflict),
    ];
    let words = words.iter().filter(|(_, on)| *on).map(|(word, _)| Value::from(*word));
    words.chain(on.statuses.iter().map(|status| Value::from(*status))).collect()
}
