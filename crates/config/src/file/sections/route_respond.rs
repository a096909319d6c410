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
        Key::new(
            "status",
            "200 to 599",
            Preset::Is("200"),
            "The HTTP status.",
            |field, respond| field.set(&mut respond.status, values::status),
            |respond| respond.status.into(),
        ),
        Key::new(
            "content_type",
            "media type",
            Preset::Is("text/plain; charset=utf-8"),
            "The `Content-Type` of the body.",
            |field, respond| field.set(&mut respond.content_type, values::header_value),
            |respond| respond.content_type.as_str().into(),
        ),
        Key::new(
            "body",
            "text",
            Preset::Is("\"\""),
            "The whole body.",
            |field, respond| field.set(&mut respond.body, |text| Ok(text.to_owned().into())),
            |respond| String::from_utf8_lossy(&respond.body).into(),
        ),
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
