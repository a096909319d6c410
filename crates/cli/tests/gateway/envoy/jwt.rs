//! JSON Web Tokens: the same requests are accepted as by the stock Envoy, with the same headers to servers and
//! clients.

use super::{
    serving,
    stock::{Both, ask, difference, with_ports},
    upstream,
};
use crate::support::{TokenKey, eventually, jwks, seconds_from_now};
use base64ct::{Base64UrlUnpadded, Encoding};
use serde_json::{Value, json};

const BOOTSTRAP: &str = include_str!("jwt.yaml");

/// The keys of provider `a`, one of each type, and those of `b`.
struct Keys {
    rsa: TokenKey,
    p256: TokenKey,
    p384: TokenKey,
    ed25519: TokenKey,
    other: TokenKey,
}

impl Keys {
    fn new() -> Self {
        Self {
            rsa: TokenKey::rsa("rsa", 2048),
            p256: TokenKey::p256("p256"),
            p384: TokenKey::p384("p384"),
            ed25519: TokenKey::ed25519("ed25519"),
            other: TokenKey::p256("other"),
        }
    }

    fn bootstrap(&self, upstream: u16) -> String {
        let of_a = jwks(&[&self.rsa, &self.p256, &self.p384, &self.ed25519]);
        let text = BOOTSTRAP.replace("KEYS_OF_A", &of_a).replace("KEYS_OF_B", &jwks(&[&self.other]));
        with_ports(&text, &[("UPSTREAM", upstream)])
    }
}

/// Returns the claims of a valid token of `a`.
fn claims() -> Value {
    json!({
        "iss": "https://a.example", "sub": "alice", "aud": "app", "exp": seconds_from_now(3600), "role": "admin",
        "number": 12, "fraction": 1.5, "yes": true, "list": ["x"], "realm": { "roles": "inner" }, "scope": "read write"
    })
}

fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims
}

/// Returns tokens for the header `Authorization`, each with a description.
fn tokens(keys: &Keys) -> Vec<(&'static str, String)> {
    let good = |claims: Value| keys.rsa.token("RS256", &claims);
    let part = |text: &str| Base64UrlUnpadded::encode_string(text.as_bytes());
    let payload = part(&claims().to_string());
    // Signed with the public key as an HMAC secret.
    let hmac = format!("{}.{payload}.{}", part(r#"{"alg":"HS256","kid":"rsa"}"#), part("signature"));
    let mut foreign = keys.rsa.token("RS256", &claims());
    foreign.truncate(foreign.rfind('.').expect("a dot"));
    let other_signature = keys.rsa.token("RS256", &with(json!({ "sub": "bob" })));
    let other_signature = other_signature.rsplit('.').next().expect("a part").to_owned();
    vec![
        ("RS256", good(claims())),
        ("RS384", keys.rsa.token("RS384", &claims())),
        ("RS512", keys.rsa.token("RS512", &claims())),
        ("PS256", keys.rsa.token("PS256", &claims())),
        ("PS384", keys.rsa.token("PS384", &claims())),
        ("PS512", keys.rsa.token("PS512", &claims())),
        ("ES256", keys.p256.token("ES256", &claims())),
        ("ES384", keys.p384.token("ES384", &claims())),
        ("EdDSA", keys.ed25519.token("EdDSA", &claims())),
        ("without kid", keys.rsa.token_with(&json!({ "alg": "RS256" }), &claims())),
        ("another kid", keys.rsa.token_with(&json!({ "alg": "RS256", "kid": "none" }), &claims())),
        ("another key's kid", keys.rsa.token_with(&json!({ "alg": "RS256", "kid": "p256" }), &claims())),
        ("expired within the leeway", good(with(json!({ "exp": seconds_from_now(-1200) })))),
        ("expired", good(with(json!({ "exp": seconds_from_now(-7200) })))),
        ("not yet valid within the leeway", good(with(json!({ "nbf": seconds_from_now(1200) })))),
        ("not yet valid", good(with(json!({ "nbf": seconds_from_now(7200) })))),
        ("for others", good(with(json!({ "aud": "others" })))),
        ("for several", good(with(json!({ "aud": ["x", "https://app/"] })))),
        ("of another issuer", good(with(json!({ "iss": "https://c.example" })))),
        ("without an issuer", good(with(json!({ "iss": "" })))),
        ("of b", keys.other.token("ES256", &json!({ "iss": "b", "role": "guest" }))),
        ("signed by another", keys.other.token_with(&json!({ "alg": "ES256", "kid": "p256" }), &claims())),
        ("with another's signature", format!("{foreign}.{other_signature}")),
        ("alg none", format!("{}.{payload}.{}", part(r#"{"alg":"none"}"#), part("x"))),
        ("HMAC", hmac),
        ("no alg", format!("{}.{payload}.AAAA", part("{}"))),
        ("kid a number", format!("{}.{payload}.AAAA", part(r#"{"alg":"RS256","kid":1}"#))),
        ("no JSON", format!("{}.{payload}.AAAA", part("{"))),
        ("payload no JSON", format!("{}.{}.AAAA", part(r#"{"alg":"RS256"}"#), part("x"))),
        ("header not base64", format!("a.{payload}.AAAA")),
        ("payload not base64", format!("{}.a.AAAA", part(r#"{"alg":"RS256"}"#))),
        ("signature not base64", format!("{foreign}.a")),
        ("two parts", foreign),
        ("iss a number", good(with(json!({ "iss": 1 })))),
        ("sub a number", good(with(json!({ "sub": 1 })))),
        ("exp a text", good(with(json!({ "exp": "never" })))),
        ("exp negative", good(with(json!({ "exp": -1 })))),
        ("nbf a text", good(with(json!({ "nbf": "now" })))),
        ("iat a list", good(with(json!({ "iat": [] })))),
        ("jti a number", good(with(json!({ "jti": 1 })))),
        ("aud a number", good(with(json!({ "aud": 1 })))),
        ("a guest", good(with(json!({ "role": "guest" })))),
        ("empty", String::new()),
    ]
}

/// Requests: curl's arguments, with a description.
fn requests(keys: &Keys) -> Vec<(String, &'static str, Vec<String>)> {
    let mut all = Vec::new();
    let header = |text: String| vec!["-H".to_owned(), text];
    let paths = ["/a", "/open", "/audience", "/any", "/istio", "/istio2", "/rbac"];
    for (what, token) in tokens(keys) {
        for path in paths {
            // Each kind of error once, and in Istio's form.
            if path == "/open" && what != "expired" || path == "/any" && what.contains(" a ") {
                continue;
            }
            all.push((what.to_owned(), path, header(format!("Authorization: Bearer {token}"))));
        }
    }
    let good = keys.rsa.token("RS256", &claims());
    let expired = keys.rsa.token("RS256", &with(json!({ "exp": 1 })));
    let of_b = keys.other.token("ES256", &json!({ "iss": "b", "role": "guest" }));
    for path in ["/a", "/b", "/all", "/any", "/missing", "/failed", "/istio", "/istio2", "/rbac", "/open"] {
        all.push(("nothing".into(), path, vec![]));
        all.push(("b's token in its header".into(), path, header(format!("x-token: {of_b}"))));
        all.push(("b's token in its cookie".into(), path, header(format!("Cookie: x=y; c={of_b}"))));
        let both =
            [header(format!("Authorization: Bearer {good}")), header(format!("x-token: {of_b}"))].concat();
        all.push(("both".into(), path, both));
        all.push(("no bearer".into(), path, header(format!("Authorization: Basic {good}"))));
        all.push(("small letters".into(), path, header(format!("Authorization: bearer {good}"))));
    }
    for path in ["/failed", "/missing"] {
        all.push(("good".into(), path, header(format!("Authorization: Bearer {good}"))));
        all.push(("expired".into(), path, header(format!("Authorization: Bearer {expired}"))));
    }
    let preflight = ["-X", "OPTIONS", "-H", "Origin: https://x", "-H", "Access-Control-Request-Method: GET"];
    all.push(("preflight".into(), "/a", preflight.map(str::to_owned).to_vec()));
    all.push(("OPTIONS".into(), "/a", vec!["-X".into(), "OPTIONS".into()]));
    all.push((
        "claims of its own".into(),
        "/a",
        [header("x-role: root".into()), header(format!("Authorization: Bearer {good}"))].concat(),
    ));
    all
}

#[test]
fn both_accept_the_same_tokens() {
    let keys = Keys::new();
    let Some(both) = Both::start(&keys.bootstrap(upstream::start().port())) else { return };
    let mut differences = Vec::new();
    let mut statuses = std::collections::BTreeMap::<String, usize>::new();
    let mut compare = |what: &str, path: &str, arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let [ours, theirs] = both.ask("http", path, &arguments);
        *statuses.entry(ours[0].clone()).or_default() += 1;
        // Envoy supports HMAC, and rejects such a token for another reason.
        if what != "HMAC" || ours[0] != "401" || theirs[0] == "200" {
            differences.extend(difference(&format!("{what} {path}"), &ours, &theirs));
        }
    };
    for (what, path, arguments) in requests(&keys) {
        compare(&what, path, &arguments);
    }
    let of_b = keys.other.token("ES256", &json!({ "iss": "b" }));
    let good = keys.rsa.token("RS256", &claims());
    for path in [
        format!("/b?x=y&t={of_b}&z"),
        format!("/b?t={of_b}"),
        format!("/a?access_token={good}"),
        format!("/a?access_token={good}&x=y"),
        format!("/istio?access_token={good}AAAA"),
        format!("/a?{}", "long".repeat(100)),
    ] {
        compare("in the query", &path, &[]);
    }
    assert!(differences.is_empty(), "{} of {statuses:?}:\n{}", differences.len(), differences.join("\n"));
    // Some requests are accepted and some are rejected.
    assert!(["200", "401", "403"].iter().all(|status| statuses.get(*status) > Some(&10)), "{statuses:?}");
}

/// Issuers change their keys: a file of keys is reloaded automatically.
#[test]
fn keys_in_a_file_are_read_again_when_they_change() {
    let keys = Keys::new();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    std::fs::write(&path, jwks(&[&keys.rsa])).expect("the keys");
    let named = format!("local_jwks: {{ filename: '{}' }}", path.display());
    let text = keys.bootstrap(upstream::start().port());
    let inline =
        text.lines().find_map(|line| line.trim().strip_prefix("local_jwks: ")).expect("keys").to_owned();
    let (gateway, _file) = serving(&text.replace(&format!("local_jwks: {inline}"), &named));
    let token = format!("Authorization: Bearer {}", keys.p256.token("ES256", &claims()));
    let status = || ask("http", gateway.port(), "/a", &["-H", &token]).swap_remove(0);
    assert_eq!(status(), "401");
    std::fs::write(&path, jwks(&[&keys.p256])).expect("other keys");
    eventually("the added key is not loaded", || status() == "200");
}

/// A public key is not a secret: it cannot be used to sign, regardless of the token's `alg`.
#[test]
fn a_public_key_is_not_a_secret() {
    let keys = Keys::new();
    let (gateway, _file) = serving(&keys.bootstrap(1));
    let part = |text: &[u8]| Base64UrlUnpadded::encode_string(text);
    for key in [&keys.rsa, &keys.p256, &keys.ed25519] {
        let jwk = key.jwk();
        let public = jwk["n"].as_str().or(jwk["x"].as_str()).expect("a part").to_owned();
        let kid = jwk["kid"].as_str().expect("an id");
        for secret in [public.clone(), jwk.to_string()] {
            let header = json!({ "alg": "HS256", "kid": kid }).to_string();
            let signed = format!("{}.{}", part(header.as_bytes()), part(claims().to_string().as_bytes()));
            let signature = boring::hash::hmac_sha256(secret.as_bytes(), signed.as_bytes()).expect("HMAC");
            let token = format!("Authorization: Bearer {signed}.{}", part(&signature));
            let answer = ask("http", gateway.port(), "/a", &["-H", &token]);
            assert_eq!(
                (answer[0].as_str(), answer.last().map(String::as_str)),
                ("401", Some("Jwt header [alg] is not supported"))
            );
        }
    }
    assert_eq!(gateway.metric("quadrille_access_denied_total", &["token"]), 6.0);
}
