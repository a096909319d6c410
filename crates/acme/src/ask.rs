//! The question whether a name's certificate may be ordered.

use crate::one_request::{self, text};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Empty;
use std::time::Duration;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(5);

/// Whether `GET URL?domain=NAME` is answered by 200; anything else that is an answer says no.
pub(crate) async fn may_be_ordered(url: &str, name: &str) -> Result<bool, String> {
    let asked = tokio::time::timeout(PATIENCE, status(url, name)).await;
    Ok(asked.unwrap_or_else(|_| Err("no answer in 5 s".to_owned()))? == StatusCode::OK)
}

async fn status(url: &str, name: &str) -> Result<StatusCode, String> {
    let uri: Uri = url.parse().map_err(text)?;
    let authority = uri.authority().ok_or("it is no URL")?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let separator = if uri.query().is_some() { '&' } else { '?' };
    // Names have no character that would need another form.
    let request = Request::get(format!("{path}{separator}domain={name}"))
        .header(header::HOST, authority.as_str())
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(text)?;
    let tcp = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await.map_err(text)?;
    one_request::send(tcp, request, |response| async move { Ok(response.status()) }).await
}
