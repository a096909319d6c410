//! Unary gRPC calls (doc/PROTOCOL-HTTP2.md of gRPC).

use super::request_body::RequestBody;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version, header};
use prost::Message;
use std::time::Duration;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// Length of the message prefix: the compressed flag and the message length.
const PREFIX: usize = 5;

/// Builds the request of a call with this timeout.
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

/// Returns the status of a call, from its trailers or, in a trailers-only response, its header.
pub(crate) fn status<'a>(head: &'a HeaderMap, trailers: Option<&'a HeaderMap>) -> Option<&'a HeaderValue> {
    trailers.and_then(|trailers| trailers.get(STATUS)).or_else(|| head.get(STATUS))
}

/// Returns the message of a response; `None` unless it is a single complete, uncompressed message.
pub(crate) fn message(body: &[u8]) -> Option<&[u8]> {
    let (prefix, message) = body.split_first_chunk::<PREFIX>()?;
    (prefix[0] == 0 && prefix[1..] == length_of(message.len()).to_be_bytes()).then_some(message)
}

pub(crate) fn framed(message: &impl Message) -> Bytes {
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
