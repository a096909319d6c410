//! The headers that tell an upstream who the client is.

use crate::connection::Connection;
use http::header::HOST;
use pingora_error::Result;
use pingora_http::RequestHeader;

/// Appends the client to `X-Forwarded-For`, and sets `X-Forwarded-Proto` and `X-Forwarded-Host`. Whatever stood in
/// `X-Forwarded-For` came from the client: an upstream may trust only the last address.
pub(super) fn set(connection: &Connection, host: Option<&str>, request: &mut RequestHeader) -> Result<()> {
    let client = connection.client.ip().to_canonical().to_string();
    let before: Vec<&str> =
        request.headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    let chain = if before.is_empty() { client } else { format!("{}, {client}", before.join(", ")) };
    request.insert_header("X-Forwarded-For", chain)?;
    request.insert_header("X-Forwarded-Proto", connection.scheme())?;
    // Only who has verified a client's certificate may say so, and nobody behind us could tell us from the client.
    request.remove_header("X-Forwarded-Client-Cert");
    match host {
        Some(host) => request.insert_header("X-Forwarded-Host", host),
        // Servers are spoken to in HTTP/1.1 at least, which needs a Host: what the client has connected to.
        None => match &connection.sni {
            Some(name) => request.insert_header(HOST, name),
            None => request.insert_header(HOST, connection.local.to_string()),
        },
    }
}
