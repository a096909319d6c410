//! Fixed responses of routes.

use crate::{
    Field, Problem,
    file::schema::{Key, Preset, Section},
    model::Respond,
    values,
};

pub(super) const RESPOND: Section<Respond> = Section {
    path: "listeners[].routes[].respond",
    about: "A fixed response. It is held in memory, so keep it short.",
    keys: &[
        Key {
            name: "status",
            value: "200 to 599",
            preset: Preset::Is("200"),
            about: "The HTTP status.",
            needs_restart: false,
            read: |field, respond| field.set(&mut respond.status, values::status),
            show: |respond| respond.status.into(),
        },
        Key {
            name: "content_type",
            value: "media type",
            preset: Preset::Is("text/plain; charset=utf-8"),
            about: "The `Content-Type` of the body.",
            needs_restart: false,
            read: |field, respond| field.set(&mut respond.content_type, values::header_value),
            show: |respond| respond.content_type.as_str().into(),
        },
        Key {
            name: "body",
            value: "text",
            preset: Preset::Is("\"\""),
            about: "The whole body.",
            needs_restart: false,
            read: |field, respond| field.set(&mut respond.body, |text| Ok(text.to_owned().into())),
            show: |respond| String::from_utf8_lossy(&respond.body).into(),
        },
    ],
};

/// Reads a fixed response.
pub(super) fn respond(field: &Field<'_>) -> Option<Respond> {
    if field.is_scalar() {
        return field.text().map(|text| Respond::text(text.to_owned()));
    }
    let mut respond = Respond::text("");
    RESPOND.read(field, &mut respond)?;
    if matches!(respond.status, 204 | 304) && !respond.body.is_empty() {
        field.at("body").error(Problem::new(
            format!("a response with status {} has no body", respond.status),
            "remove it",
        ));
    }
    Some(respond)
}
