//! Parsing and validation of HTTP/3 request headers (RFC 9114 section 4.3): quiche does not validate them.

use h2::ext::Protocol;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header,
    uri::{Authority, PathAndQuery, Scheme},
};
use quiche::h3::{Header, NameValue};

/// A malformed request, which is a stream error (RFC 9114 section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Pseudo-header fields of a request.
#[derive(Default)]
struct Pseudo<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
}

/// Parses a request header; `alone` if the stream ends after it.
pub(crate) fn read(fields: &[Header], alone: bool) -> Result<Request<()>, Malformed> {
    let pseudo_count = fields.iter().take_while(|field| field.name().starts_with(b":")).count();
    let (pseudo_fields, fields) = fields.split_at(pseudo_count);
    let mut pseudo = Pseudo::default();
    for field in pseudo_fields {
        pseudo.note(field)?;
    }
    let headers = headers(fields)?;
    let length = length(&headers)?;
    if alone && length.is_some_and(|length| length > 0) {
        return Err(Malformed);
    }
    let mut request = Request::new(());
    let method = Method::from_bytes(pseudo.method.ok_or(Malformed)?).map_err(|_| Malformed)?;
    *request.uri_mut() = pseudo.uri(&method)?;
    if let Some(protocol) = pseudo.protocol {
        let protocol = std::str::from_utf8(protocol).map_err(|_| Malformed)?;
        request.extensions_mut().insert(Protocol::from(protocol));
    }
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_3;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Parses a trailer section (RFC 9114 section 4.1).
pub(crate) fn read_trailers(fields: &[Header]) -> Option<HeaderMap> {
    headers(fields).ok()
}

impl<'a> Pseudo<'a> {
    fn note(&mut self, field: &'a Header) -> Result<(), Malformed> {
        let place = match field.name() {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            _ => return Err(Malformed),
        };
        match place.replace(field.value()) {
            None => Ok(()),
            Some(_) => Err(Malformed),
        }
    }

    fn uri(&self, method: &Method) -> Result<Uri, Malformed> {
        let authority = self.authority.map(Authority::try_from).transpose().map_err(|_| Malformed)?;
        let mut parts = http::uri::Parts::default();
        // No route is a proxy for arbitrary destinations.
        if *method == Method::CONNECT && self.protocol.is_none() {
            let named = self.scheme.is_none() && self.path.is_none();
            parts.authority = Some(authority.filter(|_| named).ok_or(Malformed)?);
            return Uri::from_parts(parts).map_err(|_| Malformed);
        }
        if self.protocol.is_some() && *method != Method::CONNECT {
            return Err(Malformed);
        }
        let scheme = Scheme::try_from(self.scheme.ok_or(Malformed)?).map_err(|_| Malformed)?;
        let path = self.path.filter(|path| !path.is_empty()).ok_or(Malformed)?;
        let path = PathAndQuery::try_from(path).map_err(|_| Malformed)?;
        // `Uri` does not allow a scheme without an authority.
        parts.scheme = authority.is_some().then_some(scheme);
        (parts.authority, parts.path_and_query) = (authority, Some(path));
        Uri::from_parts(parts).map_err(|_| Malformed)
    }
}

/// Parses the fields. Their names must be lower case, and connection-specific fields are malformed (RFC 9114 section
/// 4.2).
fn headers(fields: &[Header]) -> Result<HeaderMap, Malformed> {
    // A map holds no more than some 24,000 fields.
    let mut headers = HeaderMap::try_with_capacity(fields.len()).map_err(|_| Malformed)?;
    for field in fields {
        let (name, value) = (field.name(), field.value());
        if name.iter().any(u8::is_ascii_uppercase) {
            return Err(Malformed);
        }
        let name = HeaderName::from_bytes(name).map_err(|_| Malformed)?;
        let is_connections = matches!(
            name.as_str(),
            "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
        );
        let is_other_te = name == header::TE && !value.eq_ignore_ascii_case(b"trailers");
        if is_connections || is_other_te {
            return Err(Malformed);
        }
        let value = HeaderValue::from_bytes(value).map_err(|_| Malformed)?;
        headers.try_append(name, value).map_err(|_| Malformed)?;
    }
    Ok(headers)
}

/// Returns the declared length of the body. There may be only one value: an upstream might use another.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut said = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(length) = said.next() else { return Ok(None) };
    let digits = length.as_bytes();
    if said.next().is_some() || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed);
    }
    length.to_str().ok().and_then(|length| length.parse().ok()).map(Some).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[(&str, &str)] =
        &[(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/p?q")];

    fn read(fields: &[(&str, &str)], alone: bool) -> Result<Request<()>, Malformed> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
        super::read(&fields, alone)
    }

    fn with(more: &[(&str, &str)], alone: bool) -> Result<Request<()>, Malformed> {
        read(&[GET, more].concat(), alone)
    }

    #[test]
    fn a_request_is_what_its_header_says() {
        let request = with(&[("accept", "*/*"), ("cookie", "a"), ("cookie", "b")], true).expect("a request");
        assert_eq!(request.uri(), "https://a.example/p?q");
        assert_eq!((request.method(), request.version()), (&Method::GET, Version::HTTP_3));
        assert_eq!(request.headers().get_all("cookie").iter().count(), 2);
        let by_host = [&GET[..2], &GET[3..], &[("host", "a.example")]].concat();
        assert_eq!(read(&by_host, true).expect("a request").uri(), "/p?q");
        assert!(with(&[("te", "trailers"), ("content-length", "5")], false).is_ok());
        assert!(with(&[("content-length", "0")], true).is_ok());
    }

    #[test]
    fn a_websocket_request_has_its_protocol() {
        let request =
            read(&[&[(":method", "CONNECT")], &GET[1..], &[(":protocol", "websocket")]].concat(), false)
                .expect("a request");
        assert_eq!(request.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
        assert!(with(&[(":protocol", "websocket")], false).is_err(), "only CONNECT has protocols");
        assert!(read(&[(":method", "CONNECT"), (":authority", "a.example:443")], false).is_ok());
        assert!(read(&[&[(":method", "CONNECT")], &GET[1..]].concat(), false).is_err());
    }

    #[test]
    fn malformed_requests_are_rejected() {
        for left_out in [0, 1, 3] {
            let mut fields = GET.to_vec();
            fields.remove(left_out);
            assert_eq!(read(&fields, true).err(), Some(Malformed), "{:?}", GET[left_out]);
        }
        for more in [
            &[(":method", "GET")][..],
            &[(":status", "200")],
            &[(":path", "/")],
            &[("a", "b"), (":x", "y")],
            &[("Accept", "*/*")],
            &[("a b", "c")],
            &[("", "c")],
            &[("a", "b\r\nc: d")],
            &[("connection", "close")],
            &[("keep-alive", "5")],
            &[("proxy-connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("upgrade", "websocket")],
            &[("te", "gzip")],
            &[("content-length", "5")],
            &[("content-length", "+0")],
            &[("content-length", "")],
            &[("content-length", "0"), ("content-length", "0")],
            &[("content-length", "99999999999999999999999")],
        ] {
            assert_eq!(with(more, true).err(), Some(Malformed), "{more:?}");
        }
        for (name, value) in [(":path", ""), (":path", "/ /"), (":scheme", "h ttp"), (":method", "G T")] {
            let other = GET.iter().map(|&(known, was)| (known, if known == name { value } else { was }));
            assert_eq!(read(&other.collect::<Vec<_>>(), true).err(), Some(Malformed), "{name} {value:?}");
        }
    }

    #[test]
    fn more_fields_than_a_map_holds_are_refused() {
        let names: Vec<String> = (0..40_000).map(|number| format!("x-{number}")).collect();
        let different: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
        assert!(with(&different[..1_000], true).is_ok());
        assert_eq!(with(&different, true).err(), Some(Malformed));
        assert_eq!(with(&[("x", ""); 40_000], true).err(), Some(Malformed));
    }

    #[test]
    fn trailers_are_fields_like_others() {
        let trailers = |name: &str| read_trailers(&[Header::new(name.as_bytes(), b"1")]);
        assert!(trailers("grpc-status").is_some_and(|trailers| trailers.contains_key("grpc-status")));
        assert!(trailers(":path").is_none() && trailers("Grpc").is_none());
    }
}
