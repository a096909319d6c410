//! Response headers: status, fields, and framing of the body (RFC 9112 sections 4 to 6).

use super::{body_decoder::BodyDecoder, malformed::Malformed};
use crate::upstream::exchange::content_length;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use std::mem::MaybeUninit;

/// Maximum number of fields.
const MOST_FIELDS: usize = 100;

/// Properties of a request that determine how its response is framed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Whether the method is `HEAD`.
    pub(super) head: bool,
    /// Whether the request contains `Upgrade`.
    pub(super) upgrade: bool,
    /// The request's HTTP version; HTTP/1.0 implies `Connection: close`.
    pub(super) version: Version,
}

/// Header of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: BodyDecoder,
    /// Whether the connection persists after the body.
    pub(super) persists: bool,
    /// Length of the header in bytes.
    pub(super) length: usize,
}

impl ResponseHead {
    /// Parses the header at the start of these bytes; `None` if it is incomplete. Its fields share the memory.
    pub(super) fn parse(bytes: &Bytes, asked: Asked) -> Result<Option<Self>, Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            &mut fields,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed("too many header fields")),
            Err(_) => return Err(Malformed("not an HTTP/1.1 response header")),
        };
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or(Malformed("the status code is not a three-digit number"))?;
        let version = if response.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
        let mut headers = HeaderMap::with_capacity(response.headers.len());
        for field in &*response.headers {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value));
            let (Ok(name), Ok(value)) = (name, value) else { return Err(Malformed("invalid header field")) };
            headers.append(name, value);
        }
        if status == StatusCode::SWITCHING_PROTOCOLS && !asked.upgrade {
            return Err(Malformed("unexpected 101 Switching Protocols"));
        }
        if content_length::forbids_length(status) {
            headers.remove(header::CONTENT_LENGTH);
        }
        let bodiless = asked.head || content_length::is_bodiless(status);
        let body = match () {
            () if content_length::forbids_length(status) => BodyDecoder::none(),
            // Clients receive the fields that describe the absent body.
            () if bodiless => body(&mut headers, version).map(|_| BodyDecoder::none())?,
            () => body(&mut headers, version)?,
        };
        let persists =
            body.has_an_end() && asked.version == Version::HTTP_11 && stays_open(&headers, version);
        Ok(Some(Self { status, headers, body, persists, length }))
    }
}

/// Determines the framing of the body (RFC 9112 section 6.3). Ambiguous lengths are rejected.
fn body(headers: &mut HeaderMap, version: Version) -> Result<BodyDecoder, Malformed> {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        let mut codings = tokens(headers, &header::TRANSFER_ENCODING);
        let chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        return if !chunked || codings.next().is_some() {
            Err(Malformed("unknown transfer coding"))
        } else if headers.contains_key(header::CONTENT_LENGTH) {
            Err(Malformed("both Content-Length and Transfer-Encoding"))
        } else if version == Version::HTTP_10 {
            Err(Malformed("Transfer-Encoding in an HTTP/1.0 response"))
        } else {
            Ok(BodyDecoder::chunked())
        };
    }
    let length = content_length::unify(headers).map_err(Malformed)?;
    Ok(length.map_or_else(BodyDecoder::until_close, BodyDecoder::length))
}

/// Returns whether the connection persists after a response (RFC 9112 section 9.3).
fn stays_open(headers: &HeaderMap, version: Version) -> bool {
    let says =
        |option: &str| tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(option));
    match version {
        Version::HTTP_11 => !headers.contains_key(header::CONNECTION) || !says("close"),
        _ => says("keep-alive") && !says("close"),
    }
}

/// Returns the members of a list that frames a body: also empty ones, which are invalid there. A value that is not text
/// yields an unknown member.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Asked = Asked { head: false, upgrade: false, version: Version::HTTP_11 };

    fn parse(text: &str, asked: Asked) -> Result<Option<ResponseHead>, Malformed> {
        ResponseHead::parse(&Bytes::copy_from_slice(text.as_bytes()), asked)
    }

    fn with(fields: &str) -> Result<ResponseHead, Malformed> {
        parse(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), PLAIN).map(|head| head.expect("a complete header"))
    }

    #[test]
    fn a_header_is_there_once_its_last_byte_is() {
        let text = "HTTP/1.1 404 Not Found\r\nServer: nginx\r\nContent-Length: 3\r\n\r\n";
        for cut in 0..text.len() {
            assert!(parse(&text[..cut], PLAIN).unwrap().is_none(), "{cut}");
        }
        let head = parse(&format!("{text}abc"), PLAIN).unwrap().unwrap();
        assert_eq!((head.status, head.length, head.persists), (StatusCode::NOT_FOUND, text.len(), true));
        assert_eq!(head.headers["server"], "nginx");
        assert_eq!(head.body.remaining(), Some(3));
    }

    #[test]
    fn the_length_of_a_body_is_found_as_the_rfc_says() {
        assert_eq!(with("Content-Length: 5\r\n").unwrap().body.remaining(), Some(5));
        let listed = with("Content-Length: 5, 5\r\nContent-Length: 5\r\n").unwrap();
        assert_eq!(
            (listed.body.remaining(), &listed.headers["content-length"]),
            (Some(5), &HeaderValue::from(5))
        );
        let chunked = with("Transfer-Encoding: Chunked\r\n").unwrap();
        assert!(chunked.body.remaining().is_none() && chunked.persists);
        let until_close = with("").unwrap();
        assert!(until_close.body.remaining().is_none() && !until_close.persists);
        for status in ["204 No Content", "304 Not Modified"] {
            let head =
                parse(&format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n"), PLAIN).unwrap().unwrap();
            assert!(head.body.is_complete() && head.persists, "{status}");
            assert_eq!(head.headers.contains_key("content-length"), status.starts_with("304"), "{status}");
        }
        let head = Asked { head: true, ..PLAIN };
        let head = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head).unwrap().unwrap();
        assert!(head.body.is_complete() && head.persists);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: -5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 5 5\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: \u{b}chunked\r\n",
            "Server : nginx\r\n",
            "Server: a\r\n folded\r\n",
            "No colon\r\n",
        ] {
            assert!(with(fields).is_err(), "{fields:?}");
        }
        for text in [
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
        ] {
            assert!(parse(text, PLAIN).is_err(), "{text:?}");
        }
        assert!(with(&"a: 1\r\n".repeat(MOST_FIELDS + 1)).is_err());
    }

    #[test]
    fn absent_bodies_are_described_in_one_way() {
        let head = Asked { head: true, ..PLAIN };
        for (status, asked) in [("200 OK", head), ("304 Not Modified", PLAIN)] {
            let with = |fields: &str| parse(&format!("HTTP/1.1 {status}\r\n{fields}\r\n"), asked);
            let twice = with("Content-Length: 12\r\nContent-Length: 12\r\n").unwrap().unwrap();
            assert_eq!((twice.headers.len(), &twice.headers["content-length"]), (1, &HeaderValue::from(12)));
            assert!(twice.body.is_complete() && twice.persists);
            for fields in [
                "Content-Length: 12\r\nContent-Length: 13\r\n",
                "Content-Length: 12, 13\r\n",
                "Content-Length: +12\r\n",
                "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n",
                "Transfer-Encoding: gzip\r\n",
            ] {
                assert!(with(fields).is_err(), "{status}, {fields:?}");
            }
        }
        for fields in ["Content-Length: +12\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n"] {
            let none = parse(&format!("HTTP/1.1 204 No Content\r\n{fields}\r\n"), PLAIN).unwrap().unwrap();
            assert!(none.headers.is_empty(), "{fields:?}");
        }
    }

    #[test]
    fn a_connection_persists_as_its_version_has_it() {
        for (version, fields, persists) in [
            ("1.1", "", true),
            ("1.1", "Connection: Close\r\n", false),
            ("1.1", "Connection: x, close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let text = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
            assert_eq!(parse(&text, PLAIN).unwrap().unwrap().persists, persists, "{text:?}");
        }
    }

    #[test]
    fn another_protocol_is_switched_to_only_on_request() {
        let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
        let head = parse(text, Asked { upgrade: true, ..PLAIN }).unwrap().unwrap();
        assert_eq!(head.status, StatusCode::SWITCHING_PROTOCOLS);
    }
}
