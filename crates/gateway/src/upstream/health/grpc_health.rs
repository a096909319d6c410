//! Health check of gRPC (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use crate::upstream::exchange::{
    collect::read_whole,
    grpc_call,
    request_body::{BoxError, RequestBody},
};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use prost::Message;
use std::time::Duration;

const METHOD: &str = "/grpc.health.v1.Health/Check";
/// Maximum size of a response, which has a few bytes.
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

/// Builds the request for the health of a service; an empty name is that of the whole server.
pub(crate) fn question(
    service: &str,
    scheme: &str,
    authority: &str,
    timeout: Duration,
) -> Result<Request<RequestBody>, http::Error> {
    let message = HealthCheckRequest { service: service.to_owned() };
    grpc_call::request(scheme, authority, METHOD, timeout, &message)
}

/// Checks that the response reports the service as serving.
pub(crate) async fn serving(response: Response<Incoming>) -> Result<(), BoxError> {
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status()).into());
    }
    let (head, body) = response.into_parts();
    let (answer, trailers) = read_whole(body, LARGEST_ANSWER).await.map_err(|unread| unread.text())?;
    let status = grpc_call::status(&head.headers, trailers.as_ref());
    decide(status.map(HeaderValue::as_bytes), &answer)
}

fn decide(status: Option<&[u8]>, answer: &[u8]) -> Result<(), BoxError> {
    match status {
        Some(b"0") => {}
        Some(b"5") => return Err("unknown service (NOT_FOUND)".into()),
        Some(b"12") => return Err("no health service (UNIMPLEMENTED)".into()),
        Some(status) => return Err(format!("the call failed with status {}", status.escape_ascii()).into()),
        None => return Err("the call has no status: it is not gRPC".into()),
    }
    let message = grpc_call::message(answer).ok_or("not a single gRPC message")?;
    match HealthCheckResponse::decode(message)?.status {
        1 => Ok(()),
        2 => Err("the status is NOT_SERVING".into()),
        3 => Err("the status is SERVICE_UNKNOWN".into()),
        _ => Err("the status is UNKNOWN".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_that_serves_is_healthy() {
        let answer = |status| grpc_call::framed(&HealthCheckResponse { status }).to_vec();
        assert!(decide(Some(b"0"), &answer(1)).is_ok());
        for (status, answer, said) in [
            (Some(&b"0"[..]), answer(2), "NOT_SERVING"),
            (Some(b"0"), answer(0), "UNKNOWN"),
            (Some(b"0"), Vec::new(), "not a single"),
            (Some(b"0"), vec![1, 0, 0, 0, 0], "not a single"),
            (Some(b"0"), vec![0, 0, 0, 0, 2, 8, 0x80], "varint"),
            (Some(b"12"), answer(1), "UNIMPLEMENTED"),
            (Some(b"14\n"), answer(1), "status 14\\n"),
            (None, answer(1), "not gRPC"),
        ] {
            let found = decide(status, &answer).expect_err(said).to_string();
            assert!(found.contains(said), "{found}");
        }
    }
}
