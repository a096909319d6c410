//! Credentials in a request's `Authorization` header.

use base64ct::{Base64, Encoding};
use http::{HeaderMap, header};
use ring::hmac;
use zeroize::Zeroizing;

/// A user name with a password.
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Zeroizing<Vec<u8>>,
}

/// Maximum length of a user name and of a password, in bytes: the cost of some hashes grows with it.
const LONGEST: usize = 256;

impl Credentials {
    /// Reads the credentials of a request. Returns `None` if they are absent, repeated or malformed.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = Zeroizing::new(Base64::decode_vec(encoded.trim()).ok()?);
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
        if user.is_empty() || user.len() > LONGEST || password.len() > LONGEST {
            return None;
        }
        let user = str::from_utf8(user).ok()?.to_owned();
        Some(Self { user, password: Zeroizing::new(password.to_vec()) })
    }

    /// A keyed hash that identifies these credentials in the cache.
    pub(super) fn tag(&self, key: &hmac::Key) -> [u8; 32] {
        let mut context = hmac::Context::with_key(key);
        // A user name contains no colon.
        context.update(self.user.as_bytes());
        context.update(b":");
        context.update(&self.password);
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn said(values: &[&str]) -> Option<(String, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
        }
        Credentials::of(&headers).map(|said| (said.user, said.password.to_vec()))
    }

    #[test]
    fn a_name_and_a_password() {
        let aladdin = Some(("Aladdin".to_owned(), b"open sesame".to_vec()));
        assert_eq!(said(&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), aladdin, "RFC 7617 section 2");
        assert_eq!(said(&["bASIC  QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), aladdin);
        assert_eq!(said(&["Basic dGVzdDoxMjPCow=="]), Some(("test".into(), "123£".into())), "section 2.1");
        assert_eq!(
            said(&["Basic YTpiOmM="]),
            Some(("a".into(), b"b:c".to_vec())),
            "a password may have colons"
        );
        assert_eq!(said(&["Basic YTo="]), Some(("a".into(), Vec::new())));
    }

    #[test]
    fn malformed_credentials_are_ignored() {
        for value in ["", "Basic", "Basic !", "Bearer YTpi", "Basic YWI=", "Basic OmI=", "Basic YTpi="] {
            assert_eq!(said(&[value]), None, "{value}");
        }
        assert_eq!(said(&[]), None);
        assert_eq!(said(&["Basic YTpi", "Basic YTpi"]), None, "ambiguous credentials");
        let long = Base64::encode_string(format!("a:{}", "x".repeat(LONGEST + 1)).as_bytes());
        assert_eq!(said(&[&format!("Basic {long}")]), None);
    }

    #[test]
    fn only_the_same_pair_has_the_same_tag() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"a key");
        let tag = |user: &str, password: &str| {
            let password = Zeroizing::new(password.as_bytes().to_vec());
            Credentials { user: user.into(), password }.tag(&key)
        };
        assert_eq!(tag("ada", "x"), tag("ada", "x"));
        assert_ne!(tag("ada", "x"), tag("ad", "ax"));
        assert_ne!(tag("ada", "x"), tag("ada", "y"));
    }
}
