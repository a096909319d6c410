//! Bodies of local error responses: HTML, JSON or plain text, according to `Accept`.

use crate::http::request::accept::qualities;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use quadrille_config::model::Respond;

/// A format of error bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Html,
    Json,
}

impl Form {
    /// Returns the format of a media type.
    pub(crate) fn of_type(content_type: &str) -> Self {
        match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            kind if kind == "application/json" || kind.ends_with("+json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// Tells caches that the format of an error depends on `Accept` (RFC 9110 section 12.5.5).
pub(crate) const VARY: (HeaderName, HeaderValue) = (header::VARY, HeaderValue::from_static("Accept"));

/// A plain text response with this status and text; an empty text stands for the status name.
pub(crate) fn plain(status: u16, words: &'static str) -> Respond {
    let words = if words.is_empty() { name_of(status) } else { words };
    Respond { status, content_type: "text/plain".into(), ..Respond::text(words.trim_end()) }
}

fn name_of(status: u16) -> &'static str {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.unwrap_or("Error")
}

/// A response with this status and text in the client's format; an empty text stands for the status name.
pub(crate) fn of(status: u16, words: &'static str, headers: &HeaderMap) -> Respond {
    let name = name_of(status);
    let words = if words.is_empty() { name } else { words.trim_end() };
    let (content_type, body) = match wanted(headers) {
        Form::Text => ("text/plain; charset=utf-8", format!("{words}\n")),
        Form::Json => {
            let body = serde_json::json!({ "status": status, "error": words });
            ("application/json", format!("{body}\n"))
        }
        Form::Html => {
            let said = if words == name { String::new() } else { format!("<p>{words}</p>\n") };
            let page = format!(
                "<!doctype html>\n<html lang=\"en\">\n<title>{status} {name}</title>\n<h1>{status} {name}</h1>\n{said}</html>\n"
            );
            ("text/html; charset=utf-8", page)
        }
    };
    Respond { status, content_type: content_type.into(), ..Respond::text(body) }
}

/// Returns the format that the client prefers among those it names; plain text if it names none (RFC 9110 section
/// 12.5.1).
pub(crate) fn wanted(headers: &HeaderMap) -> Form {
    let mut best = (0, Form::Text);
    for (range, quality) in qualities(headers, header::ACCEPT) {
        let form = match range.to_ascii_lowercase().as_str() {
            "text/html" | "application/xhtml+xml" => Form::Html,
            "application/json" | "application/problem+json" => Form::Json,
            "text/plain" | "text/*" | "*/*" => Form::Text,
            _ => continue,
        };
        if quality > best.0 {
            best = (quality, form);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers
    }

    #[test]
    fn the_form_is_the_one_that_the_client_prefers() {
        for (accept, expected) in [
            ("*/*", Form::Text),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Form::Html),
            ("application/json", Form::Json),
            ("application/json, text/plain, */*", Form::Json),
            ("text/plain;q=0.5, application/json;q=0.6", Form::Json),
            ("text/html;q=0, application/json;q=0.1", Form::Json),
            ("application/json;q=nonsense", Form::Text),
            ("application/json;q=7", Form::Text),
            ("image/png", Form::Text),
            ("", Form::Text),
        ] {
            assert_eq!(wanted(&accepting(accept)), expected, "{accept}");
        }
        assert_eq!(wanted(&HeaderMap::new()), Form::Text);
    }

    #[test]
    fn an_error_says_its_status_and_words() {
        let body = |status, words, accept| {
            let respond = of(status, words, &accepting(accept));
            assert_eq!(respond.status, status);
            String::from_utf8(respond.body.to_vec()).unwrap()
        };
        assert_eq!(body(502, "", "*/*"), "Bad Gateway\n");
        assert_eq!(body(404, "No route.\n", "*/*"), "No route.\n");
        assert_eq!(body(502, "", "application/json"), "{\"error\":\"Bad Gateway\",\"status\":502}\n");
        let page = body(404, "No route.\n", "text/html");
        assert!(page.contains("<h1>404 Not Found</h1>\n<p>No route.</p>"), "{page}");
        assert!(!body(503, "", "text/html").contains("<p>"));
        assert_eq!(body(599, "", "*/*"), "Error\n");
    }
}
