//! Local errors for gRPC clients: a gRPC status in a response without messages.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use std::time::Duration;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the header of an error response to a call after the elapsed time; `None` if the request is not a gRPC
/// call. `words` is a text of the gateway; without one, most errors have that of their status.
pub(crate) fn answer(
    request: &HeaderMap,
    status: u16,
    words: &'static str,
    elapsed: Duration,
) -> Option<HeaderMap> {
    let content_type = request.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let rest = content_type.strip_prefix("application/grpc")?;
    if !(rest.is_empty() || rest.starts_with(['+', ';'])) {
        return None;
    }
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    // A failure at or after the client's deadline is reported as the deadline.
    let is_late =
        matches!(status, 502..=504) && deadline(request).is_some_and(|deadline| elapsed >= deadline);
    let code = if is_late { DEADLINE_EXCEEDED } else { code_of(status) };
    headers.insert(STATUS, HeaderValue::from_static(code));
    let own = Some(words.trim_ascii_end()).filter(|words| !words.is_empty());
    if let Some(words) = own.or_else(|| meaning_of(status)) {
        headers.insert(MESSAGE, HeaderValue::from_static(words));
    }
    Some(headers)
}

/// Adds details to a rejected call: a gRPC status other than the one mapped from HTTP, and the reason.
pub(crate) fn explain(call: &mut HeaderMap, status: Option<&'static str>, words: &[u8]) {
    /// Characters that are escaped in gRPC messages (doc/PROTOCOL-HTTP2.md of gRPC).
    const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
    if let Some(status) = status {
        call.insert(STATUS, HeaderValue::from_static(status));
    }
    let words = percent_encode(words, ESCAPED).to_string();
    if let Some(message) = HeaderValue::try_from(words).ok().filter(|words| !words.is_empty()) {
        call.insert(MESSAGE, message);
    }
}

const DEADLINE_EXCEEDED: &str = "4";
pub(crate) const RESOURCE_EXHAUSTED: &str = "8";

/// Maps an HTTP status to a gRPC status, as gRPC clients do (doc/http-grpc-status-mapping.md of gRPC).
fn code_of(status: u16) -> &'static str {
    match status {
        400 => "13",
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502..=504 => "14",
        _ => "2",
    }
}

/// Returns the message of an error that has no text of its own; `None` for an access step that failed, about which
/// clients learn nothing.
fn meaning_of(status: u16) -> Option<&'static str> {
    match status {
        500 => None,
        502 => Some("The server cannot be reached, or closed the connection."),
        503 => Some("No server is available."),
        504 => Some("The server did not respond in time."),
        _ => StatusCode::from_u16(status).ok()?.canonical_reason(),
    }
}

/// Returns the client's timeout (doc/PROTOCOL-HTTP2.md of gRPC).
fn deadline(request: &HeaderMap) -> Option<Duration> {
    let text = request.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let value: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(value.saturating_mul(3600)),
        "M" => Duration::from_secs(value.saturating_mul(60)),
        "S" => Duration::from_secs(value),
        "m" => Duration::from_millis(value),
        "u" => Duration::from_micros(value),
        "n" => Duration::from_nanos(value),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_a_status_of_theirs() {
        let request = |fields: &[(&'static str, &'static str)]| {
            let field = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            fields.iter().map(field).collect::<HeaderMap>()
        };
        let told = |fields: &[(&'static str, &'static str)], status| {
            let answer = answer(&request(fields), status, "Words.\n", Duration::from_millis(500));
            answer.map(|headers| headers[STATUS].to_str().unwrap().to_owned())
        };
        let call = ("content-type", "application/grpc+proto");
        for (timeout, status, code) in [
            ("10m", 502, "4"),
            ("10m", 404, "12"),
            ("2S", 503, "14"),
            ("500000u", 504, "4"),
            ("99999999H", 429, "14"),
            ("m", 502, "14"),
            ("", 401, "16"),
            ("x", 418, "2"),
        ] {
            assert_eq!(told(&[call, ("grpc-timeout", timeout)], status).as_deref(), Some(code), "{timeout}");
        }
        let messages = |status, words| {
            let answer = answer(&request(&[call]), status, words, Duration::ZERO);
            answer.and_then(|headers| Some(headers.get(MESSAGE)?.to_str().unwrap().to_owned()))
        };
        assert_eq!(messages(403, "Words.\n").as_deref(), Some("Words."));
        assert_eq!(
            messages(502, "").as_deref(),
            Some("The server cannot be reached, or closed the connection.")
        );
        assert_eq!(messages(403, "").as_deref(), Some("Forbidden"));
        assert_eq!(messages(500, ""), None);
        for other in ["application/grpc-web", "application/json", "text/application/grpc"] {
            assert_eq!(told(&[("content-type", other)], 502), None, "{other}");
        }
        assert_eq!(told(&[], 502), None);
    }
}
