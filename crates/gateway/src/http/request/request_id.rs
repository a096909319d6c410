//! Request IDs, which identify a request in the logs of all hops: `X-Request-Id`.

use super::forwarded_for::Stance;
use http::{HeaderMap, HeaderName, HeaderValue};
use quadrille_config::model::RequestIdOrigin;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an ID that is accepted, in bytes.
const LONGEST: usize = 128;

/// Sets a new request ID, unless the request has one from a permitted origin.
pub(crate) fn give(headers: &mut HeaderMap, origin: RequestIdOrigin, stance: Stance) {
    let is_kept = match origin {
        RequestIdOrigin::TrustedProxies => stance == Stance::Believe && has_a_name(headers),
        RequestIdOrigin::Client => headers.contains_key(&REQUEST_ID),
        RequestIdOrigin::Gateway => false,
        RequestIdOrigin::ClientAlone => true,
    };
    if !is_kept && let Ok(made) = HeaderValue::try_from(random()) {
        headers.insert(REQUEST_ID, made);
    }
}

fn has_a_name(headers: &HeaderMap) -> bool {
    let mut said = headers.get_all(&REQUEST_ID).iter();
    said.next().is_some_and(is_a_name) && said.next().is_none()
}

/// Returns whether the value may be logged: logs expect a single word.
fn is_a_name(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    (1..=LONGEST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

/// A version 4 UUID (RFC 9562 section 5.4). It is an identifier and not a secret.
fn random() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(said: &[&'static str], stance: Stance) -> Vec<String> {
        given_by(said, RequestIdOrigin::TrustedProxies, stance)
    }

    fn given_by(said: &[&'static str], origin: RequestIdOrigin, stance: Stance) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in said {
            headers.append(REQUEST_ID, HeaderValue::from_static(value));
        }
        give(&mut headers, origin, stance);
        headers.get_all(REQUEST_ID).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_trusted_proxys_name_is_kept_and_others_get_a_new_one() {
        assert_eq!(given(&["a-1"], Stance::Believe), ["a-1"]);
        for (said, stance) in [
            (&["a-1"][..], Stance::Replace),
            (&["a-1"], Stance::AppendOnly),
            (&[], Stance::Believe),
            (&[""], Stance::Believe),
            (&["two words"], Stance::Believe),
            (&["one", "two"], Stance::Believe),
        ] {
            let given = given(said, stance);
            assert_eq!(given.len(), 1, "{said:?}");
            let parts: Vec<usize> = given[0].split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{given:?}");
            assert!(
                given[0].as_bytes()[14] == b'4' && b"89ab".contains(&given[0].as_bytes()[19]),
                "{given:?}"
            );
        }
    }

    #[test]
    fn as_envoy_has_them() {
        let own = |origin| given_by(&["a b"], origin, Stance::AppendOnly);
        assert_eq!(own(RequestIdOrigin::Client), ["a b"]);
        assert_eq!(own(RequestIdOrigin::ClientAlone), ["a b"]);
        assert_ne!(own(RequestIdOrigin::Gateway), ["a b"]);
        let none = |origin| given_by(&[], origin, Stance::AppendOnly).len();
        assert_eq!(none(RequestIdOrigin::Client), 1);
        assert_eq!(none(RequestIdOrigin::ClientAlone), 0);
        assert_eq!(none(RequestIdOrigin::Gateway), 1);
    }

    #[test]
    fn no_name_is_given_twice() {
        let names: std::collections::HashSet<_> = (0..1000).map(|_| random()).collect();
        assert_eq!(names.len(), 1000);
    }
}
