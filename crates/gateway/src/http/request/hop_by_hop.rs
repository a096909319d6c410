//! Hop-by-hop headers (RFC 9110 section 7.6.1).

use crate::header_list;
use http::{HeaderMap, HeaderName, HeaderValue, header};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const KINDS: usize = 6;
/// Headers that are always hop-by-hop, whether or not `Connection` names them.
pub(crate) const NAMES: [HeaderName; KINDS] = [
    header::CONNECTION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    KEEP_ALIVE,
    PROXY_CONNECTION,
];

/// Returns whether the header is always hop-by-hop.
pub(crate) fn is_always(name: &HeaderName) -> bool {
    NAMES.contains(name)
}

/// Removes the hop-by-hop headers, including those that `Connection` names.
pub(crate) fn remove(headers: &mut HeaderMap) {
    remove_named(headers);
    remove_always(headers);
}

/// Removes the headers that are hop-by-hop even if `Connection` does not name them.
pub(crate) fn remove_always(headers: &mut HeaderMap) {
    // Few are present, and scanning all headers is cheaper than looking up each name.
    let mut present = [false; KINDS];
    for name in headers.keys() {
        if let Some(index) = NAMES.iter().position(|one| one == name) {
            present[index] = true;
        }
    }
    let [_, te, ..] = present;
    // Trailers pass, and gRPC requires this header.
    let trailers = te && header_list::has(headers, header::TE, "trailers");
    for (name, _) in NAMES.iter().zip(present).filter(|(_, present)| *present) {
        headers.remove(name);
    }
    if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes the headers that `Connection` names, except the always hop-by-hop ones, which may still be needed.
pub(crate) fn remove_named(headers: &mut HeaderMap) {
    if !headers.contains_key(header::CONNECTION) {
        return;
    }
    let named: Vec<HeaderName> = header_list::members(headers, header::CONNECTION)
        // These options do not name headers, and mostly there are no others.
        .filter(|token| !["keep-alive", "close"].iter().any(|option| token.eq_ignore_ascii_case(option)))
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect();
    for name in named {
        // Host and Content-Length are needed even if `Connection` names them.
        if name != header::HOST && name != header::CONTENT_LENGTH && !is_always(&name) {
            headers.remove(name);
        }
    }
}

/// Returns whether an HTTP/1.1 request opens a WebSocket (RFC 6455 section 4.1).
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && header_list::has(headers, header::UPGRADE, "websocket")
        && header_list::has(headers, header::CONNECTION, "upgrade")
}

/// Returns the first protocol that an HTTP/1.1 request offers and that is allowed (RFC 9110 section 7.8), as the client
/// writes it.
pub(crate) fn offered_upgrade(headers: &HeaderMap, allows: impl Fn(&str) -> bool) -> Option<HeaderValue> {
    if !headers.contains_key(header::UPGRADE) || !header_list::has(headers, header::CONNECTION, "upgrade") {
        return None;
    }
    let offered = header_list::members(headers, header::UPGRADE).find(|protocol| allows(protocol))?;
    HeaderValue::from_str(offered).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_is_for_one_connection_goes_no_further() {
        let mut some = headers(&[
            ("connection", "keep-alive, X-Mine"),
            ("connection", "host"),
            ("host", "a"),
            ("x-mine", "1"),
            ("keep-alive", "5"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-other", "2"),
        ]);
        remove(&mut some);
        assert_eq!(some, headers(&[("host", "a"), ("te", "trailers"), ("x-other", "2")]));
    }

    #[test]
    fn only_websocket_counts_as_an_upgrade() {
        for (upgrade, connection, expected) in [
            ("websocket", "Upgrade", true),
            ("h2c, WebSocket", "keep-alive, upgrade", true),
            ("h2c", "upgrade", false),
            ("websocket", "close", false),
        ] {
            let headers = headers(&[("upgrade", upgrade), ("connection", connection)]);
            assert_eq!(asks_for_websocket(&headers), expected, "{upgrade} {connection}");
        }
    }
}
