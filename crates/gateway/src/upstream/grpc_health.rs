//! The health check of gRPC (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use super::request_body::{BoxError, RequestBody};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri, Version, header, uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use std::time::Duration;

const METHOD: &str = "/grpc.health.v1.Health/Check";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const PREFIX: usize = 5;
/// An answer is a few bytes.
const LARGEST_ANSWER: usize = 1024;

#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Asks for the health of a service; an empty name is that of the server as a whole.
pub(super) fn question(
    service: &str,
    scheme: uri::Scheme,
    authority: &str,
    timeout: Duration,
) -> Result<Request<RequestBody>, http::Error> {
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(METHOD).build()?;
    Request::post(uri)
        .version(Version::HTTP_2)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header("grpc-timeout", format!("{}m", timeout.as_millis().clamp(1, 99_999_999)))
        .body(RequestBody::whole(framed(&HealthCheckRequest { service: service.to_owned() })))
}

/// Whether the answer says that the service serves.
pub(super) async fn serving(response: Response<Incoming>) -> Result<(), BoxError> {
    if response.status() != StatusCode::OK {
        return Err(format!("it answers {}", response.status()).into());
    }
    let (head, mut body) = response.into_parts();
    let (mut answer, mut trailers) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if answer.len() + data.len() > LARGEST_ANSWER => {
                return Err("its answer is too long".into());
            }
            Ok(data) => answer.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let status = trailers.as_ref().and_then(|trailers: &HeaderMap| trailers.get(STATUS));
    decide(status.or(head.headers.get(STATUS)).map(header::HeaderValue::as_bytes), &answer)
}

fn decide(status: Option<&[u8]>, answer: &[u8]) -> Result<(), BoxError> {
    match status {
        Some(b"0") => {}
        Some(b"5") => return Err("it does not know the service (NOT_FOUND)".into()),
        Some(b"12") => return Err("it has no health service (UNIMPLEMENTED)".into()),
        Some(status) => return Err(format!("the call ends with status {}", status.escape_ascii()).into()),
        None => return Err("the call has no status: it is no gRPC".into()),
    }
    let message = answer.get(PREFIX..).filter(|_| answer[0] == 0).ok_or("not one message of gRPC")?;
    match HealthCheckResponse::decode(message)?.status {
        1 => Ok(()),
        2 => Err("it says NOT_SERVING".into()),
        3 => Err("it says SERVICE_UNKNOWN".into()),
        _ => Err("it says UNKNOWN".into()),
    }
}

/// A message with gRPC's prefix.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    out.extend_from_slice(&message.encode_to_vec());
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_that_serves_is_healthy() {
        let answer = |status| framed(&HealthCheckResponse { status }).to_vec();
        assert!(decide(Some(b"0"), &answer(1)).is_ok());
        for (status, answer, said) in [
            (Some(&b"0"[..]), answer(2), "NOT_SERVING"),
            (Some(b"0"), answer(0), "UNKNOWN"),
            (Some(b"0"), Vec::new(), "not one message"),
            (Some(b"0"), vec![1, 0, 0, 0, 0], "not one message"),
            (Some(b"0"), vec![0, 0, 0, 0, 2, 8, 0x80], "varint"),
            (Some(b"12"), answer(1), "UNIMPLEMENTED"),
            (Some(b"14\n"), answer(1), "status 14\\n"),
            (None, answer(1), "no gRPC"),
        ] {
            let found = decide(status, &answer).expect_err(said).to_string();
            assert!(found.contains(said), "{found}");
        }
    }
}
