//! Tests of requirements with locally signed tokens.

use super::*;
use crate::http::request::{self, forwarded_for::Sender};
use base64ct::{Base64UrlUnpadded, Encoding};
use quadrille_config::model::{JwtLocation, JwtRule, PathMatch, Place, Source};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::json;
use std::time::Duration;

/// Seconds since 1970.
const NOW: u64 = 1_000_000;

struct Issuer {
    name: &'static str,
    key: EcdsaKeyPair,
}

impl Issuer {
    fn new(name: &'static str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("a key");
        Self { name, key }
    }

    fn jwks(&self) -> String {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(Base64UrlUnpadded::encode_string);
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": x, "y": y }, { "kty": "moon" }] }).to_string()
    }

    fn token(&self, payload: &Value) -> String {
        let mut payload = payload.clone();
        payload["iss"] = self.name.into();
        let part = |value: &Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(&json!({ "alg": "ES256" })), part(&payload));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", Base64UrlUnpadded::encode_string(signature.as_ref()))
    }

    fn provider(&self, location: JwtLocation) -> JwtProvider {
        JwtProvider {
            name: self.name.to_owned(),
            issuer: self.name.to_owned(),
            audiences: Vec::new(),
            keys: JwtKeys::Local(Source::inline(self.jwks())),
            locations: vec![location],
            forward: false,
            payload_header: None,
            claim_headers: vec![(HeaderName::from_static("x-role"), vec!["role".to_owned()])],
            payload_metadata: "payload".to_owned(),
            header_metadata: String::new(),
            space_delimited: Vec::new(),
            leeway: Duration::from_secs(60),
            place: Place::flag("test"),
        }
    }
}

fn header(name: &str) -> JwtLocation {
    JwtLocation::Header(name.to_owned(), String::new())
}

fn authentication(providers: Vec<JwtProvider>, requirement: JwtRequirement) -> Authentication {
    let rule = JwtRule {
        path: PathMatch::any(),
        headers: Vec::new(),
        query: Vec::new(),
        requirement: Some(requirement),
    };
    let model = JwtAuthentication {
        providers,
        rules: vec![rule],
        bypass_preflights: false,
        strip_failure_response: false,
        place: Place::flag("test"),
    };
    Authentication::new(&Arc::new(model), &Upstreams::default(), &KeyFetchers::default(), &mut Vec::new())
        .expect("keys")
}

fn asked(uri: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = http::Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(()).expect("a request");
    let sender = Sender::of(([127, 0, 0, 1], 1).into(), None, request.headers());
    request::split(request, false, sender).0
}

#[test]
fn every_token_that_is_there_must_be_good() {
    let (one, other) = (Issuer::new("one"), Issuer::new("one"));
    let (good, bad) = (one.token(&json!({})), other.token(&json!({})));
    let providers = || vec![one.provider(header("a"))];
    for (requirement, of_none) in [
        (JwtRequirement::Provider(0, vec![]), Err(Problem::Missing)),
        (JwtRequirement::AllowMissing, Ok(())),
        (
            JwtRequirement::Any(vec![JwtRequirement::Provider(0, vec![]), JwtRequirement::AllowMissing]),
            Ok(()),
        ),
    ] {
        let tokens = authentication(providers(), requirement.clone());
        let check = |headers: &[(&str, &str)]| tokens.authenticate(&mut asked("/", headers), true, NOW);
        assert_eq!(check(&[]), of_none, "{requirement:?}");
        assert_eq!(check(&[("a", &good)]), Ok(()), "{requirement:?}");
        for both in [[("a", good.as_str()), ("a", bad.as_str())], [("a", bad.as_str()), ("a", good.as_str())]]
        {
            assert_eq!(check(&both), Err(Problem::VerificationFails), "{requirement:?}");
        }
        let many = vec![("a", good.as_str()); MOST_TOKENS + 1];
        assert_eq!(check(&many), Err(Problem::MultipleTokens), "{requirement:?}");
    }
    let tokens = authentication(providers(), JwtRequirement::AllowMissingOrFailed);
    let mut request = asked("/", &[("a", &bad)]);
    assert_eq!(tokens.authenticate(&mut request, true, NOW), Ok(()));
    assert!(request.headers.contains_key("a"), "unchanged");
}

#[test]
fn what_a_token_says_comes_from_it_alone() {
    let one = Issuer::new("one");
    let tokens = authentication(vec![one.provider(header("a"))], JwtRequirement::AllowMissing);
    let mut request = asked("/", &[("x-role", "root")]);
    assert_eq!(tokens.authenticate(&mut request, true, NOW), Ok(()));
    assert!(!request.headers.contains_key("x-role"), "set by the client");
    let mut request = asked("/", &[("x-role", "root"), ("a", &one.token(&json!({ "role": "guest" })))]);
    assert_eq!(tokens.authenticate(&mut request, true, NOW), Ok(()));
    assert_eq!(request.headers.get_all("x-role").iter().collect::<Vec<_>>(), ["guest"]);
    assert!(!request.headers.contains_key("a"), "removed from the upstream request");
}

#[test]
fn a_token_of_the_query_is_taken_out_of_it() {
    let one = Issuer::new("one");
    let provider = one.provider(JwtLocation::Parameter("t".into()));
    let tokens = authentication(vec![provider], JwtRequirement::Provider(0, vec![]));
    let token = one.token(&json!({}));
    for (uri, left) in [
        (format!("/p?t={token}"), "/p"),
        (format!("/p?a=b&t={token}&c"), "/p?a=b&c"),
        (format!("https://h.example/?%74={token}&a"), "/?a"),
    ] {
        let mut request = asked(&uri, &[]);
        assert_eq!(tokens.authenticate(&mut request, true, NOW), Ok(()));
        assert_eq!(request.sent_path().as_str(), left);
    }
}

#[test]
fn without_keys_every_token_is_rejected() {
    let one = Issuer::new("one");
    for keys in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#] {
        let provider =
            JwtProvider { keys: JwtKeys::Local(Source::inline(keys)), ..one.provider(header("a")) };
        let tokens = authentication(vec![provider], JwtRequirement::Provider(0, vec![]));
        let mut request = asked("/", &[("a", &one.token(&json!({})))]);
        assert_eq!(tokens.authenticate(&mut request, true, NOW), Err(Problem::NoValidKey), "{keys}");
    }
    let missing = Source::File("/nonexistent".into());
    let provider = JwtProvider { keys: JwtKeys::Local(missing), ..one.provider(header("a")) };
    let model = JwtAuthentication {
        providers: vec![provider],
        rules: Vec::new(),
        bypass_preflights: false,
        strip_failure_response: false,
        place: Place::flag("test"),
    };
    let problem = Authentication::new(
        &Arc::new(model),
        &Upstreams::default(),
        &KeyFetchers::default(),
        &mut Vec::new(),
    )
    .err()
    .expect("a problem");
    assert!(problem.to_string().contains("cannot read the keys of `one`, /nonexistent"), "{problem}");
}

#[test]
fn claims_are_formatted_as_in_envoy() {
    let claims =
        json!({ "whole": 12, "half": 1.5, "below": -3, "large": 1e20, "yes": true, "no": "", "list": [1] });
    let claims = claims.as_object().expect("an object");
    let told = |name: &str| claim_text(claims, &[name.to_owned()]);
    assert_eq!(told("whole").as_deref(), Some("12"));
    assert_eq!(told("half").as_deref(), Some("1.500000"));
    assert_eq!(told("below").as_deref(), Some("-3.000000"));
    assert_eq!(told("large").as_deref(), Some("100000000000000000000.000000"));
    assert_eq!(told("yes").as_deref(), Some("true"));
    assert_eq!(told("list").as_deref(), Some("WzFd"));
    assert_eq!((told("no"), told("none")), (None, None));
}
