//! HTTP/1.1 to a collector.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;

/// Takes one connection for each request: there is one a second.
#[derive(Debug)]
pub(super) struct Collector;

/// Bytes of an answer, at most.
const LONGEST_ANSWER: usize = 64 * 1024;

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (mut head, body) = request.into_parts();
        let authority = head.uri.authority().ok_or("the endpoint names no host")?.clone();
        let tcp = TcpStream::connect(authority.as_str()).await?;
        head.headers.insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
        head.uri = head.uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
        let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await?;
        let driver = tokio::spawn(connection);
        let exchange = async {
            let response = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let answer = exchange.await;
        driver.abort();
        answer
    }
}
