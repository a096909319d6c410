//! Environment variables of OpenTelemetry exporters.

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// Returns the headers from the environment; those for traces come last.
pub(super) fn headers() -> Vec<(HeaderName, HeaderValue)> {
    VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).flat_map(|text| parse(&text)).collect()
}

/// Parses `name=value,name=value` with percent-encoding. Invalid headers are ignored, as by other exporters.
fn parse(text: &str) -> Vec<(HeaderName, HeaderValue)> {
    let pair = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_and_invalid_ones_are_ignored() {
        let read = parse("api-key=a%20b, Authorization = Basic%3D ,=x,nothing,a b=c");
        let shown: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(shown, [("api-key", &b"a b"[..]), ("authorization", b"Basic=")]);
        assert!(!format!("{read:?}").contains("Basic"), "they are secrets");
    }
}
