//! Response compression, where the route enables it and the client accepts it.

mod compressed_body;
mod encoder;
mod negotiation;

pub(crate) use compressed_body::CompressedBody;
pub(crate) use encoder::Encoder;

use crate::{connection::Connection, header_list, http::request::Request, memory};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header, response};
use quadrille_config::model::{Compression, ContentCoding};

/// The client that a response is for, with its request.
pub(crate) struct Client<'a> {
    pub(crate) request: &'a Request,
    pub(crate) connection: &'a Connection,
}

impl Client<'_> {
    /// Returns whether a response may be personal: the length of compressed data could disclose secrets in it. Only
    /// credentials that a browser attaches by itself to requests from another site's page matter here: a password, a
    /// certificate, and these cookies (`None` for all).
    fn is_one_person(&self, cookies: Option<&[String]>) -> bool {
        let credentials = &self.request.credentials;
        credentials.password || credentials.have_cookie(cookies) || self.connection.certificate.is_some()
    }
}

/// Decides whether and how to compress a response, and adapts its header. Where compression is possible, the header
/// also gets `Vary: Accept-Encoding`.
pub(crate) fn begin(
    compression: &Compression,
    client: &Client<'_>,
    head: &mut response::Parts,
    is_empty: bool,
) -> Option<Encoder> {
    if compression.codings.is_empty()
        || !is_whole(head.status)
        || is_fixed(&head.headers)
        || !is_of_type(compression, &head.headers)
    {
        return None;
    }
    if length(&head.headers).is_some_and(|length| length < compression.minimum.max(1)) {
        return None;
    }
    if !compression.personal
        && !holds_no_secret(&head.headers)
        && client.is_one_person(compression.cookies.as_deref())
    {
        return None;
    }
    depend_on_client(&mut head.headers);
    // In HTTP/1.0, the end of the connection ends the body, so a truncated body looks complete.
    if is_empty || client.request.method == Method::HEAD || client.request.version == Version::HTTP_10 {
        return None;
    }
    if memory::is_scarce() {
        return None;
    }
    let coding = negotiation::choose(&compression.codings, &client.request.headers)?;
    let encoder = Encoder::new(coding)?;
    change(&mut head.headers, coding);
    Some(encoder)
}

/// Returns whether the response has a body that is not a part of another.
fn is_whole(status: StatusCode) -> bool {
    !status.is_informational()
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Returns whether the response must not change: it is compressed already, is partial, or says so (RFC 9111 section
/// 5.2.2.6). gRPC compresses each message by itself, and its clients do not support a coding of the whole.
fn is_fixed(headers: &HeaderMap) -> bool {
    let coded = headers.get_all(header::CONTENT_ENCODING).iter();
    let coded = coded.filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")).count();
    coded > 0
        || headers.contains_key(header::CONTENT_RANGE)
        || content_type(headers).is_some_and(is_grpc)
        || header_list::has(headers, header::CACHE_CONTROL, "no-transform")
}

/// Returns whether the media type is `application/grpc`, also with a suffix such as `+proto` or `-web`.
fn is_grpc(content_type: &str) -> bool {
    const GRPC: &str = "application/grpc";
    content_type.get(..GRPC.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(GRPC))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_of_type(compression: &Compression, headers: &HeaderMap) -> bool {
    let Some(own) = content_type(headers) else { return false };
    compression.types.iter().any(|wanted| match wanted.strip_suffix('*') {
        Some(group) => own.get(..group.len()).is_some_and(|own| own.eq_ignore_ascii_case(group)),
        None => own.eq_ignore_ascii_case(wanted),
    })
}

/// Returns the media type without parameters.
fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok()?.split(';').next().map(str::trim)
}

/// Returns whether a response is the same for all clients, according to its headers or its type.
fn holds_no_secret(headers: &HeaderMap) -> bool {
    const CODE: [&str; 6] = [
        "text/css",
        "text/javascript",
        "application/javascript",
        "application/wasm",
        "application/manifest+json",
        "image/svg+xml",
    ];
    let own = content_type(headers).unwrap_or_default();
    CODE.iter().any(|code| own.eq_ignore_ascii_case(code))
        || header_list::has(headers, header::CACHE_CONTROL, "public")
}

/// Makes caches distinguish responses by `Accept-Encoding`.
fn depend_on_client(headers: &mut HeaderMap) {
    if !header_list::has(headers, header::VARY, "accept-encoding")
        && !header_list::has(headers, header::VARY, "*")
    {
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

/// Adapts the header to the compressed body, which has another length and is not byte-for-byte equal.
fn change(headers: &mut HeaderMap, coding: ContentCoding) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::ACCEPT_RANGES);
    for digest in ["content-md5", "digest", "content-digest", "repr-digest"] {
        headers.remove(digest);
    }
    let strong = headers.get(header::ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    let weak = strong.map(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()));
    match weak {
        Some(Ok(weak)) => _ = headers.insert(header::ETAG, weak),
        Some(Err(_)) => _ = headers.remove(header::ETAG),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_compressed_body() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("etag", "\"abc\""),
            ("content-length", "1234"),
            ("accept-ranges", "bytes"),
            ("content-digest", "sha-256=:AAAA:"),
            ("x-other", "stays"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        change(&mut headers, ContentCoding::Gzip);
        assert_eq!(headers.len(), 3, "{headers:?}");
        assert_eq!(headers["etag"], "W/\"abc\"");
        assert_eq!(headers["content-encoding"], "gzip");
        change(&mut headers, ContentCoding::Zstd);
        assert_eq!(headers["etag"], "W/\"abc\"", "a weak tag is unchanged");
    }

    #[test]
    fn vary_is_said_once() {
        let vary = |before: &[&'static str]| {
            let mut headers = HeaderMap::new();
            before.iter().for_each(|value| _ = headers.append("vary", HeaderValue::from_static(value)));
            depend_on_client(&mut headers);
            let all: Vec<_> =
                headers.get_all("vary").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
            all.join(", ")
        };
        assert_eq!(vary(&[]), "Accept-Encoding");
        assert_eq!(vary(&["Origin"]), "Origin, Accept-Encoding");
        assert_eq!(vary(&["Origin, accept-encoding"]), "Origin, accept-encoding");
        assert_eq!(vary(&["*"]), "*");
    }
}
