//! Headers of the W3C Trace Context.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanId, TraceId, TraceState};
use std::str::FromStr;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The remote parent span of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) is_sampled: bool,
}

/// Parses the headers. Returns `None` if they are absent or malformed (section 3.2).
pub(crate) fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut said = headers.get_all(&TRACEPARENT).iter();
    let (Some(text), None) = (said.next(), said.next()) else { return None };
    let text = text.to_str().ok()?;
    let (version, rest) = text.split_at_checked(2)?;
    let fields = rest.get(..53)?;
    // Later versions may have more fields; version `ff` is invalid.
    let is_known = match version {
        "ff" => false,
        "00" => rest.len() == 53,
        _ => is_hex(version) && (rest.len() == 53 || rest.as_bytes()[53] == b'-'),
    };
    let mut parts = fields.split('-');
    let ("", trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?) else {
        return None;
    };
    let fits = trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    if !is_known || !fits || ![trace, span, flags].into_iter().all(is_hex) {
        return None;
    }
    let parent = Parent {
        trace: TraceId::from_hex(trace).ok()?,
        span: SpanId::from_hex(span).ok()?,
        is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
    };
    (parent.trace != TraceId::INVALID && parent.span != SpanId::INVALID).then_some(parent)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns the trace state of previous hops.
pub(crate) fn state(headers: &HeaderMap) -> TraceState {
    let lines: Vec<_> = headers.get_all(&TRACESTATE).iter().filter_map(|line| line.to_str().ok()).collect();
    TraceState::from_str(&lines.join(",")).unwrap_or_default()
}

/// Sets this span as the parent of the request.
pub(crate) fn set(headers: &mut HeaderMap, trace: TraceId, span: SpanId, is_sampled: bool) {
    let text = format!("00-{trace}-{span}-{:02x}", u8::from(is_sampled));
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(TRACEPARENT, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn of(lines: &[&str]) -> Option<Parent> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(TRACEPARENT, HeaderValue::from_str(line).unwrap());
        }
        parent(&headers)
    }

    #[test]
    fn a_parent_is_what_the_standard_calls_one() {
        let expected = |is_sampled| {
            let (trace, span) = (TraceId::from_hex(TRACE).unwrap(), SpanId::from_hex(SPAN).unwrap());
            Some(Parent { trace, span, is_sampled })
        };
        for (line, is_sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("00-{TRACE}-{SPAN}-03"), true),
            (format!("01-{TRACE}-{SPAN}-01"), true),
            (format!("cc-{TRACE}-{SPAN}-01-what-comes"), true),
        ] {
            assert_eq!(of(&[&line]), expected(is_sampled), "{line}");
        }
    }

    #[test]
    fn invalid_parents_are_ignored() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        for line in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("cc-{TRACE}-{SPAN}-01.more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0x-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}0-{}-01", &SPAN[1..]),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{TRACE}-+{}-01", &SPAN[1..]),
        ] {
            assert_eq!(of(&[&line]), None, "{line}");
        }
        assert_eq!(of(&[&good, &good]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_is_set_is_read_again() {
        let mut headers = HeaderMap::new();
        let (trace, span) = (TraceId::from(7), SpanId::from(9));
        set(&mut headers, trace, span, true);
        assert_eq!(parent(&headers), Some(Parent { trace, span, is_sampled: true }));
    }
}
