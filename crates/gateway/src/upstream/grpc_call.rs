//! Calls of gRPC with one message each way (doc/PROTOCOL-HTTP2.md of gRPC).

use super::request_body::RequestBody;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version, header};
use prost::Message;
use std::time::Duration;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// Whether a message is compressed, and its length.
const PREFIX: usize = 5;

/// The request that calls a method of a server, which may take so long.
pub(crate) fn request(
    scheme: &str,
    authority: &str,
    method: &str,
    timeout: Duration,
    message: &impl Message,
) -> Result<Request<RequestBody>, http::Error> {
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(method).build()?;
    Request::post(uri)
        .version(Version::HTTP_2)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header("grpc-timeout", format!("{}m", timeout.as_millis().clamp(1, 99_999_999)))
        .body(RequestBody::whole(framed(message)))
}

/// What became of a call: in its trailers, or in its header if it has no others.
pub(crate) fn status<'a>(head: &'a HeaderMap, trailers: Option<&'a HeaderMap>) -> Option<&'a HeaderValue> {
    trailers.and_then(|trailers| trailers.get(STATUS)).or_else(|| head.get(STATUS))
}

/// The message of an answer; `None` unless it is one, whole and not compressed.
pub(crate) fn message(body: &[u8]) -> Option<&[u8]> {
    let (prefix, message) = body.split_first_chunk::<PREFIX>()?;
    (prefix[0] == 0 && prefix[1..] == length_of(message.len()).to_be_bytes()).then_some(message)
}

pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + length);
    out.put_u8(0);
    out.put_u32(length_of(length));
    out.extend_from_slice(&message.encode_to_vec());
    out.freeze()
}

fn length_of(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
