//! Fault injection.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    fraction::{self, percentage},
    model::Fault,
    quote, values,
};
use std::time::Duration;

pub(super) const FAULT: Section<FaultDraft, Fault> = Section {
    path: "listeners[].routes[].fault",
    about: "Faults that are injected into some requests, to test clients.",
    keys: &[
        Key::new(
            "delay",
            "duration",
            Preset::Means("none"),
            "A delay before the request is processed.",
            |field, draft| draft.delay = field.parse(values::timeout),
            |fault| fault.delay.map(|(delay, _)| time(delay)).into(),
        ),
        Key::new(
            "delay_percent",
            "percentage",
            Preset::Is("100"),
            "The share of requests that are delayed.",
            |field, draft| draft.delayed = field.parse(percentage),
            |fault| fault.delay.map(|(_, parts)| fraction::show(parts)).into(),
        ),
        Key::new(
            "abort",
            "200 to 599",
            Preset::Means("none"),
            "The status of a response in place of the route's.",
            |field, draft| draft.abort = field.parse(status),
            |fault| fault.abort.map(|(status, _)| status).into(),
        ),
        Key::new(
            "abort_percent",
            "percentage",
            Preset::Is("100"),
            "The share of requests that are aborted.",
            |field, draft| draft.aborted = field.parse(percentage),
            |fault| fault.abort.map(|(_, parts)| fraction::show(parts)).into(),
        ),
    ],
};

/// Values read for fault injection.
#[derive(Default)]
pub(super) struct FaultDraft {
    delay: Option<Duration>,
    delayed: Option<u32>,
    abort: Option<u16>,
    aborted: Option<u32>,
}

/// Reads the faults of a route.
pub(super) fn fault(field: &Field<'_>) -> Option<Fault> {
    let mut draft = FaultDraft::default();
    FAULT.read(field, &mut draft)?;
    for (key, share) in [("delay", "delay_percent"), ("abort", "abort_percent")] {
        if let (None, Some(share)) = (field.entry(key), field.entry(share)) {
            share.error(Problem::new(format!("`{key}` is missing"), format!("add `{key}`, or remove this")));
        }
    }
    if field.entry("delay").is_none() && field.entry("abort").is_none() {
        field.error(Problem::new("no fault is set", "write `delay` or `abort`"));
    }
    let FaultDraft { delay, delayed, abort, aborted } = draft;
    Some(Fault {
        delay: delay.map(|delay| (delay, delayed.unwrap_or(fraction::ALL))),
        abort: abort.map(|status| (status, aborted.unwrap_or(fraction::ALL))),
    })
}

fn status(text: &str) -> Result<u16, Problem> {
    values::status(text).map_err(|_| {
        Problem::new(
            format!("{} is not the status of a response", quote(text)),
            "use 200 to 599, such as 503",
        )
    })
}
