//! The headers that tell an upstream who the client is.

use crate::connection::Connection;
use http::{HeaderMap, HeaderName, HeaderValue, header::InvalidHeaderValue};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Appends the client to `X-Forwarded-For`, and sets `X-Forwarded-Proto` and `X-Forwarded-Host`. Whatever stood in
/// `X-Forwarded-For` came from the client: an upstream may trust only the last address.
pub(super) fn set(
    connection: &Connection,
    host: Option<HeaderValue>,
    headers: &mut HeaderMap,
) -> Result<(), InvalidHeaderValue> {
    remove_claims(headers);
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
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host);
    }
    Ok(())
}

/// Takes out what a client says of itself in a place where servers expect a proxy to speak.
fn remove_claims(headers: &mut HeaderMap) {
    if headers.keys().any(is_claim) {
        let claims: Vec<HeaderName> = headers.keys().filter(|name| is_claim(name)).cloned().collect();
        for claim in claims {
            headers.remove(claim);
        }
    }
}

/// Everything but `X-Forwarded-For` itself, which is appended to.
fn is_claim(name: &HeaderName) -> bool {
    let text = name.as_str();
    let family =
        ["forwarded", "x-real-ip"].iter().any(|known| text.len() == known.len() && reads_as(text, known));
    (family || reads_as(text, "x-forwarded-")) && *name != FORWARDED_FOR
}

/// Whether a name begins like this to a server that makes `_` of `-`, as CGI does (RFC 3875 section 4.1.18).
fn reads_as(name: &str, beginning: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| byte == wanted || byte == b'_' && wanted == b'-';
    name.len() >= beginning.len() && name.bytes().zip(beginning.bytes()).all(same)
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
