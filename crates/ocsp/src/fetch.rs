//! OCSP over HTTP (RFC 6960 appendix A).

use crate::{Failure, Inquiry};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use tokio::net::TcpStream;

/// Timeout of an exchange.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a response. Responses have one or two kilobytes, and are sent to every client that requests them.
const LARGEST: usize = 32 * 1024;
/// Maximum length of a request in a URL, so that caches can serve the response (RFC 5019 section 5).
const LARGEST_IN_ADDRESS: usize = 255;

/// HTTP method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// GET, if the request is short enough.
    Get,
    /// POST, which every responder supports.
    Post,
}

/// Returns the responder's response without parsing it.
pub(crate) async fn fetch(inquiry: &Inquiry, way: Way) -> Result<Bytes, Failure> {
    let responder = &inquiry.responder;
    let asked = tokio::time::timeout(PATIENCE, exchange(responder, &inquiry.request, way)).await;
    let asked = asked.unwrap_or_else(|_| Err("no response within 10 s".to_owned()));
    asked.map_err(|problem| Failure::Unreachable(format!("the responder {responder}: {problem}")))
}

async fn exchange(responder: &Uri, question: &[u8], way: Way) -> Result<Bytes, String> {
    let host = responder.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let tcp = TcpStream::connect((host, responder.port_u16().unwrap_or(80))).await.map_err(text)?;
    let request = request(responder, question, way)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await.map_err(text)?;
    let exchange = async { read(sender.send_request(request).await.map_err(text)?).await };
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes, String> {
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        return Err(format!("status {}", head.status));
    }
    let body = Limited::new(body, LARGEST).collect().await;
    Ok(body.map_err(|error| error.to_string())?.to_bytes())
}

fn request(responder: &Uri, question: &[u8], way: Way) -> Result<Request<Full<Bytes>>, String> {
    let authority = responder.authority().map_or("", http::uri::Authority::as_str);
    // Omits userinfo, which may contain a password.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = responder.path_and_query().map_or("/", |path| path.as_str());
    let builder = Request::builder().header(header::HOST, host).header(header::CONNECTION, "close");
    let encoded = in_address(question);
    let request = match way {
        Way::Get if encoded.len() <= LARGEST_IN_ADDRESS => {
            let path = format!("{}/{encoded}", path.trim_end_matches('/'));
            builder.method(Method::GET).uri(path).body(Full::default())
        }
        _ => builder
            .method(Method::POST)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/ocsp-request")
            .body(Full::new(Bytes::copy_from_slice(question))),
    };
    request.map_err(text)
}

fn in_address(question: &[u8]) -> String {
    utf8_percent_encode(&Base64::encode_string(question), NON_ALPHANUMERIC).to_string()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_stands_in_the_address_if_it_is_short() {
        let responder: Uri = "http://ocsp.example:8080/ca/".parse().expect("an address");
        let get = request(&responder, &[0xfb, 0xff, 0xfe, 0x01], Way::Get).expect("a request");
        assert_eq!(
            (get.method(), get.uri().to_string().as_str()),
            (&Method::GET, "/ca/%2B%2F%2F%2BAQ%3D%3D")
        );
        assert_eq!(get.headers()[header::HOST], "ocsp.example:8080");
        for (question, way) in [(&[1; 4][..], Way::Post), (&[1; 300], Way::Get)] {
            let post = request(&responder, question, way).expect("a request");
            assert_eq!((post.method(), post.uri().path()), (&Method::POST, "/ca/"));
        }
    }
}
