//! Request mirroring.

use crate::{
    Field,
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    fraction,
    model::Mirror,
};
use serde_json::{Value, json};

pub(super) const MIRROR: Section<Mirror> = Section {
    path: "listeners[].routes[].mirror[]",
    about: "An upstream that receives copies of matching requests, for instance to test it under real load. Its \
            responses are discarded. Copies never delay the original requests: data that the upstream is too slow \
            to accept is not copied. Not for WebSocket.",
    keys: &[
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Required,
            "The upstream that receives copies.",
            |field, mirror| mirror.upstream = field.upstream_name().unwrap_or_default(),
            |mirror| mirror.upstream.as_str().into(),
        ),
        Key::new(
            "percent",
            "percentage, up to 100",
            Preset::Is("100"),
            "The share of requests that is copied, chosen at random; `0.01` is one in ten thousand.",
            |field, mirror| field.set(&mut mirror.parts, fraction::percentage),
            |mirror| fraction::show(mirror.parts).into(),
        ),
    ],
};

/// Reads a list; the name of an upstream alone copies all requests to it.
pub(super) fn mirrors(field: &Field<'_>) -> Vec<Mirror> {
    field.items_or_one().iter().filter_map(mirror).collect()
}

fn mirror(field: &Field<'_>) -> Option<Mirror> {
    let mut mirror = Mirror { upstream: String::new(), parts: fraction::ALL, marks_host: false };
    if field.is_scalar() {
        return Some(Mirror { upstream: field.upstream_name()?, ..mirror });
    }
    MIRROR.read(field, &mut mirror)?;
    Some(mirror)
}

/// Shows the mirrors of a route.
pub(super) fn show(mirrors: &[Mirror]) -> Value {
    list(mirrors.iter().map(|mirror| match mirror.marks_host {
        false => MIRROR.show(mirror),
        true => {
            json!({ "upstream": mirror.upstream, "percent": fraction::show(mirror.parts), "marks_host": true })
        }
    }))
}
