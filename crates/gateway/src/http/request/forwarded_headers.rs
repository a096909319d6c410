//! Headers that identify the client to upstreams.

use super::{
    Request,
    authority::Authority,
    forwarded_certificate::FORWARDED_CERTIFICATE,
    forwarded_for::{self, FORWARDED_FOR, Stance},
    header_spelling::reads_as,
};
use crate::connection::Connection;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{FORWARDED, InvalidHeaderValue},
};
use std::net::IpAddr;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Sets `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`. Values from the peer are replaced, or kept and
/// appended to, according to the stance towards it.
pub(crate) fn set(
    request: &Request,
    connection: &Connection,
    host: Option<HeaderValue>,
    headers: &mut HeaderMap,
) -> Result<(), InvalidHeaderValue> {
    if request.forwarded_is_set {
        return Ok(());
    }
    let stance = request.sender.stance;
    remove_claims(headers, stance, request.tells_certificate);
    let peer = connection.client_ip_header();
    let chain = match stance {
        Stance::Replace => peer.clone(),
        Stance::Believe | Stance::AppendOnly => forwarded_for::appended(headers, peer),
    };
    headers.insert(FORWARDED_FOR, chain);
    if headers.contains_key(FORWARDED) {
        headers.append(FORWARDED, element(connection, host.as_ref())?);
    }
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static(connection.scheme()));
    if let Some(host) = host {
        headers.entry(FORWARDED_HOST).or_insert(host);
    }
    Ok(())
}

/// Sets these headers in a received request, so that conditions see them. Upstream requests then have them already.
pub(crate) fn set_early(request: &mut Request, connection: &Connection) {
    let host = request.authority.as_ref().map(Authority::to_header).transpose();
    let mut headers = std::mem::take(&mut request.headers);
    let is_set = host.is_ok_and(|host| set(request, connection, host, &mut headers).is_ok());
    request.headers = headers;
    request.forwarded_is_set = is_set;
}

/// Returns whether the header belongs to those that a proxy adds about the client or for Envoy, in any spelling.
pub(crate) fn is_about_client(name: &HeaderName) -> bool {
    is_claim(name) || *name == FORWARDED_FOR || reads_as(name.as_str(), "x-envoy-")
}

/// Returns the `Forwarded` element for this hop (RFC 7239 section 4).
fn element(connection: &Connection, host: Option<&HeaderValue>) -> Result<HeaderValue, InvalidHeaderValue> {
    let node = match connection.client.ip().to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    };
    let host = host.and_then(|host| host.to_str().ok());
    let host = host.map(|host| format!(";host=\"{host}\"")).unwrap_or_default();
    HeaderValue::try_from(format!("for={node}{host};proto={}", connection.scheme()))
}

/// Removes headers about the client that upstreams expect from a proxy, unless the peer is trusted to set them.
fn remove_claims(headers: &mut HeaderMap, stance: Stance, tells_certificate: bool) {
    if headers.keys().any(is_claim) {
        let removed = |name: &&HeaderName| {
            let believed = stance == Stance::Believe && is_believable(name);
            is_claim(name) && !believed && !(tells_certificate && **name == FORWARDED_CERTIFICATE)
        };
        let claims: Vec<HeaderName> = headers.keys().filter(removed).cloned().collect();
        for claim in claims {
            headers.remove(claim);
        }
    }
}

/// Returns whether a trusted proxy may set the header. Spellings with `_` are never accepted, and client certificates
/// have their own setting.
fn is_believable(name: &HeaderName) -> bool {
    [FORWARDED, FORWARDED_PROTO, FORWARDED_HOST, FORWARDED_PORT, REAL_IP].contains(name)
}

/// Returns whether the header makes a claim about the client. `X-Forwarded-For` itself has its own rule.
fn is_claim(name: &HeaderName) -> bool {
    let text = name.as_str();
    let family =
        ["forwarded", "x-real-ip"].iter().any(|known| text.len() == known.len() && reads_as(text, known));
    (family || reads_as(text, "x-forwarded-")) && *name != FORWARDED_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_in_every_spelling() {
        for (name, expected) in [
            ("x-forwarded-for", false),
            ("x_forwarded_for", true),
            ("x-forwarded_for", true),
            ("x-forwarded-host", true),
            ("x-forwarded-port", true),
            ("x-forwarded-client-cert", true),
            ("x_real_ip", true),
            ("forwarded", true),
            ("forwarded-for", false),
            ("x-real-ipv6", false),
            ("x-forward", false),
            ("host", false),
        ] {
            assert_eq!(is_claim(&HeaderName::from_static(name)), expected, "{name}");
        }
    }
}
