//! The headers that tell an upstream who the client is.

use crate::connection::Connection;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{HOST, InvalidHeaderValue},
};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_CLIENT_CERT: HeaderName = HeaderName::from_static("x-forwarded-client-cert");

/// Appends the client to `X-Forwarded-For`, and sets `X-Forwarded-Proto` and `X-Forwarded-Host`. Whatever stood in
/// `X-Forwarded-For` came from the client: an upstream may trust only the last address.
pub(super) fn set(
    connection: &Connection,
    host: Option<&HeaderValue>,
    headers: &mut HeaderMap,
) -> Result<(), InvalidHeaderValue> {
    let client = connection.client_ip_header();
    let before: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
    let chain = match &before[..] {
        [] => client.clone(),
        before => {
            let client = client.to_str().unwrap_or_default();
            HeaderValue::try_from(format!("{}, {client}", before.join(", ")))?
        }
    };
    headers.insert(FORWARDED_FOR, chain);
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static(connection.scheme()));
    // Only who has verified a client's certificate may say so, and nobody behind us could tell us from the client.
    headers.remove(FORWARDED_CLIENT_CERT);
    match host {
        Some(host) => _ = headers.insert(FORWARDED_HOST, host.clone()),
        // Servers are spoken to in HTTP/1.1 at least, which needs a Host: what the client has connected to.
        None => {
            let host = connection.sni.clone().unwrap_or_else(|| connection.local.to_string());
            headers.insert(HOST, HeaderValue::try_from(host)?);
        }
    }
    Ok(())
}
