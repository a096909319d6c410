//! Parser of JSON Web Tokens (RFC 7519) in the compact serialization of RFC 7515.

use super::status::Problem;
use base64ct::{Base64UrlUnpadded, Encoding};
use serde_json::{Map, Value};

/// Maximum size of a token, in bytes.
const LARGEST: usize = 32 * 1024;

/// A parsed token that is not verified yet.
pub(super) struct Token<'a> {
    /// The signing input.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    pub(super) header: Map<String, Value>,
    pub(super) algorithm: Algorithm,
    /// ID of the key that signed it; empty if absent.
    pub(super) key_id: String,
    pub(super) payload: Map<String, Value>,
    /// The payload in its encoded form.
    pub(super) encoded_payload: &'a str,
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    /// Times in seconds since 1970; 0 if absent.
    not_before: u64,
    expires: u64,
}

/// Signature algorithms (RFC 7518 section 3.1, RFC 8037). HMAC is not supported, because a holder of the shared
/// secret could also sign; `none` is not a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }
}

impl<'a> Token<'a> {
    /// Parses a token and checks the types of its claims.
    pub(super) fn parse(text: &'a str) -> Result<Self, Problem> {
        if text.len() > LARGEST {
            return Err(Problem::BadFormat);
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Problem::BadFormat);
        };
        if [header, payload, signature].contains(&"") {
            return Err(Problem::BadFormat);
        }
        let encoded_payload = payload;
        let header = object(header, Problem::HeaderBadBase64, Problem::HeaderBadJson)?;
        let Some(Value::String(algorithm)) = header.get("alg") else { return Err(Problem::HeaderBadAlg) };
        let algorithm = Algorithm::named(algorithm).ok_or(Problem::AlgNotImplemented)?;
        // Critical extensions (RFC 7515 section 4.1.11) are not supported.
        if header.contains_key("crit") {
            return Err(Problem::AlgNotImplemented);
        }
        let key_id = text_of(&header, "kid", Problem::HeaderBadKid)?;
        let payload = object(payload, Problem::PayloadBadBase64, Problem::PayloadBadJson)?;
        let issuer = text_of(&payload, "iss", Problem::IssNotString)?;
        text_of(&payload, "sub", Problem::SubNotString)?;
        seconds(&payload, "iat", Problem::IatNotInteger, Problem::IatOutOfRange)?;
        let not_before = seconds(&payload, "nbf", Problem::NbfNotInteger, Problem::NbfOutOfRange)?;
        let expires = seconds(&payload, "exp", Problem::ExpNotInteger, Problem::ExpOutOfRange)?;
        text_of(&payload, "jti", Problem::JtiNotString)?;
        let audiences = audiences(&payload)?;
        let signed = &text[..text.len() - signature.len() - 1];
        let signature = Base64UrlUnpadded::decode_vec(signature).map_err(|_| Problem::SignatureBadBase64)?;
        Ok(Self {
            signed,
            signature,
            header,
            algorithm,
            key_id,
            payload,
            encoded_payload,
            issuer,
            audiences,
            not_before,
            expires,
        })
    }

    /// Checks that the token is valid at this time, in seconds since 1970, with clocks that differ by up to `leeway`.
    pub(super) fn check_time(&self, now: u64, leeway: u64) -> Result<(), Problem> {
        if self.not_before > now.saturating_add(leeway) {
            return Err(Problem::NotYetValid);
        }
        if self.expires != 0 && now > self.expires.saturating_add(leeway) {
            return Err(Problem::Expired);
        }
        Ok(())
    }

    /// Returns whether the token is for one of these audiences; an empty list accepts all.
    pub(super) fn is_for(&self, audiences: &[String]) -> bool {
        let is_one = |own: &String| audiences.iter().any(|wanted| bare(wanted) == bare(own));
        audiences.is_empty() || self.audiences.iter().any(is_one)
    }
}

/// Strips the scheme and a trailing slash, which Envoy ignores when it compares audiences.
fn bare(audience: &str) -> &str {
    let bare = audience.strip_prefix("https://").or_else(|| audience.strip_prefix("http://"));
    let bare = bare.unwrap_or(audience);
    bare.strip_suffix('/').unwrap_or(bare)
}

fn object(part: &str, bad_base64: Problem, bad_json: Problem) -> Result<Map<String, Value>, Problem> {
    let bytes = Base64UrlUnpadded::decode_vec(part).map_err(|_| bad_base64)?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(bad_json),
    }
}

/// Returns a string member; empty if absent.
fn text_of(object: &Map<String, Value>, name: &str, problem: Problem) -> Result<String, Problem> {
    match object.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(problem),
    }
}

/// Returns a time member; 0 if absent. Fractions of seconds are dropped (RFC 7519 section 2 allows them).
fn seconds(
    object: &Map<String, Value>,
    name: &str,
    no_number: Problem,
    out_of_range: Problem,
) -> Result<u64, Problem> {
    let Some(value) = object.get(name) else { return Ok(0) };
    let Value::Number(number) = value else { return Err(no_number) };
    if let Some(seconds) = number.as_u64() {
        return Ok(seconds);
    }
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match number.as_f64() {
        Some(seconds) if (0.0..BEYOND).contains(&seconds) => Ok(seconds as u64),
        _ => Err(out_of_range),
    }
}

fn audiences(payload: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(Problem::AudNotString);
    match payload.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(text).collect(),
        Some(one) => Ok(vec![text(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(header: &str, payload: &str) -> String {
        let part = |text: &str| Base64UrlUnpadded::encode_string(text.as_bytes());
        format!("{}.{}.AAAA", part(header), part(payload))
    }

    fn problem(token: &str) -> Option<Problem> {
        Token::parse(token).err()
    }

    const HEADER: &str = r#"{"alg":"RS256","kid":"a"}"#;

    #[test]
    fn a_token_is_taken_apart() {
        let text = encoded(HEADER, r#"{"iss":"i","aud":["x","y"],"nbf":100,"exp":200.9}"#);
        let token = Token::parse(&text).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!((token.issuer.as_str(), token.key_id.as_str()), ("i", "a"));
        assert_eq!(token.audiences, ["x", "y"]);
        assert!(text.starts_with(token.signed) && !token.signed.ends_with('.'));
        assert_eq!(token.check_time(100, 0), Ok(()));
        assert_eq!(token.check_time(200, 0), Ok(()));
        assert_eq!(token.check_time(201, 0), Err(Problem::Expired));
        assert_eq!(token.check_time(260, 60), Ok(()));
        assert_eq!(token.check_time(261, 60), Err(Problem::Expired));
        assert_eq!(token.check_time(99, 0), Err(Problem::NotYetValid));
        assert_eq!(token.check_time(40, 60), Ok(()));
        assert_eq!(token.check_time(39, 60), Err(Problem::NotYetValid));
        let for_ever = encoded(HEADER, "{}");
        assert_eq!(Token::parse(&for_ever).map(|token| token.check_time(u64::MAX, 60)).ok(), Some(Ok(())));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for (token, expected) in [
            (String::new(), Problem::BadFormat),
            ("a.b".into(), Problem::BadFormat),
            ("a.b.c.d".into(), Problem::BadFormat),
            ("a..c".into(), Problem::BadFormat),
            ("a.b.".into(), Problem::BadFormat),
            ("a".repeat(LARGEST) + ".a.a", Problem::BadFormat),
            ("!.e30.e30".into(), Problem::HeaderBadBase64),
            ("e30=.e30.e30".into(), Problem::HeaderBadBase64),
            (encoded("[]", "{}"), Problem::HeaderBadJson),
            (encoded(&"[".repeat(10_000), "{}"), Problem::HeaderBadJson),
            (encoded("{}", "{}"), Problem::HeaderBadAlg),
            (encoded(r#"{"alg":1}"#, "{}"), Problem::HeaderBadAlg),
            (encoded(r#"{"alg":"none"}"#, "{}"), Problem::AlgNotImplemented),
            (encoded(r#"{"alg":"HS256"}"#, "{}"), Problem::AlgNotImplemented),
            (encoded(r#"{"alg":"RS256","crit":["b64"],"b64":false}"#, "{}"), Problem::AlgNotImplemented),
            (encoded(r#"{"alg":"RS256","kid":1}"#, "{}"), Problem::HeaderBadKid),
            (encoded(HEADER, "1"), Problem::PayloadBadJson),
            (encoded(HEADER, r#"{"iss":1}"#), Problem::IssNotString),
            (encoded(HEADER, r#"{"sub":null}"#), Problem::SubNotString),
            (encoded(HEADER, r#"{"iat":"1"}"#), Problem::IatNotInteger),
            (encoded(HEADER, r#"{"nbf":-1}"#), Problem::NbfOutOfRange),
            (encoded(HEADER, r#"{"exp":"never"}"#), Problem::ExpNotInteger),
            (encoded(HEADER, r#"{"exp":1e300}"#), Problem::ExpOutOfRange),
            (encoded(HEADER, r#"{"jti":[]}"#), Problem::JtiNotString),
            (encoded(HEADER, r#"{"aud":[1]}"#), Problem::AudNotString),
            (encoded(HEADER, "{}") + "!", Problem::SignatureBadBase64),
        ] {
            assert_eq!(problem(&token), Some(expected), "{token:.80}");
        }
    }

    #[test]
    fn audiences_are_the_same_with_another_scheme() {
        let token = |audience: &str| encoded(HEADER, &format!(r#"{{"aud":"{audience}"}}"#));
        let is_for = |token: &str, wanted: &str| {
            Token::parse(token).is_ok_and(|token| token.is_for(&[wanted.to_owned()]))
        };
        assert!(is_for(&token("https://a/"), "a") && is_for(&token("a"), "http://a/"));
        assert!(!is_for(&token("a"), "b") && !is_for(&encoded(HEADER, "{}"), "b"));
        assert!(Token::parse(&token("a")).is_ok_and(|token| token.is_for(&[])));
    }
}
