//! Error pages.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::source,
    },
    model::{ErrorPage, Place, Source, Statuses},
    quote, values,
};
use serde_json::Value;

pub(super) const ERROR_PAGE: Section<ErrorPageDraft, ErrorPage> = Section {
    path: "listeners[].error_pages[]",
    about: "Error pages, in place of the gateway's own short ones. A page for one status precedes one for its class, \
            and a route's before its listener's. A client whose `Accept` prefers a format other than that of the \
            pages (HTML or JSON) receives the gateway's own page in that format.",
    keys: &[
        Key::new(
            "status",
            "`400` to `599`, `4xx`, `5xx`, or a list of them",
            Preset::Required,
            "The error statuses to which the page applies.",
            |field, draft| {
                draft.statuses =
                    field.items_or_one().iter().filter_map(|item| item.parse(statuses)).collect();
            },
            |page| page.statuses.iter().map(|statuses| show_statuses(*statuses)).collect(),
        ),
        Key::new(
            "file",
            "path",
            Preset::Means("none"),
            "A file of up to 1 MiB, which is held in memory and read again when it changes. A page has a `file` \
                    or a `body`.",
            |field, draft| draft.file = field.placed(Field::file_source),
            |page| page.body.path().map(|_| source(&page.body)).into(),
        ),
        Key::new(
            "body",
            "text",
            Preset::Means("none"),
            "The content of the page.",
            |field, draft| draft.body = field.placed(|field| field.text().map(Source::inline)),
            |page| match page.body.path() {
                Some(_) => Value::Null,
                None => page.body.read().map(|body| String::from_utf8_lossy(&body).into_owned()).ok().into(),
            },
        ),
        Key::new(
            "content_type",
            "media type",
            Preset::Means("that of the file's extension: `.html`, `.json`, `.txt`; else HTML"),
            "The `Content-Type` of the page.",
            |field, draft| draft.content_type = field.parse(values::header_value),
            |page| page.content_type.as_str().into(),
        ),
        Key::new(
            "servers",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether the page replaces errors of servers, too. Their bodies and the headers that describe them \
                    are then not forwarded.",
            |field, draft| field.set(&mut draft.of_servers, switch),
            |page| if page.of_servers { "on" } else { "off" }.into(),
        ),
    ],
};

/// Values read for an error page.
#[derive(Default)]
pub(super) struct ErrorPageDraft {
    statuses: Vec<Statuses>,
    file: Option<(Source, Place)>,
    body: Option<(Source, Place)>,
    content_type: Option<String>,
    of_servers: bool,
}

pub(super) fn error_pages(field: &Field<'_>) -> Vec<ErrorPage> {
    field.items().iter().filter_map(error_page).collect()
}

fn error_page(field: &Field<'_>) -> Option<ErrorPage> {
    let mut draft = ErrorPageDraft::default();
    ERROR_PAGE.read(field, &mut draft)?;
    match (field.entry("file"), field.entry("body")) {
        (None, None) => field.error(Problem::new("the page is empty", "add `file` or `body`")),
        (Some(_), Some(body)) => body.error(Problem::new("a page has a `file` or a `body`", "remove one")),
        _ => {}
    }
    let (body, body_place) = draft.file.or(draft.body)?;
    let content_type = draft.content_type.unwrap_or_else(|| by_ending(&body).to_owned());
    Some(ErrorPage { statuses: draft.statuses, body, body_place, content_type, of_servers: draft.of_servers })
}

fn by_ending(body: &Source) -> &'static str {
    let ending = body.path().and_then(|path| path.extension()?.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}

fn statuses(text: &str) -> Result<Statuses, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "4xx" => Ok(Statuses::Class(4)),
        "5xx" => Ok(Statuses::Class(5)),
        one => one.parse().ok().filter(|one| (400..600).contains(one)).map(Statuses::One).ok_or_else(|| {
            Problem::new(
                format!("{} is not an error status", quote(text)),
                "write 400 to 599, `4xx` or `5xx`",
            )
        }),
    }
}

fn show_statuses(statuses: Statuses) -> Value {
    match statuses {
        Statuses::One(status) => status.to_string().into(),
        Statuses::Class(digit) => format!("{digit}xx").into(),
    }
}

pub(super) fn show(pages: &[ErrorPage]) -> Value {
    crate::file::shown::list(pages.iter().map(|page| ERROR_PAGE.show(page)))
}
