//! Access control by RequestAuthentication and AuthorizationPolicy.

use super::{Mesh, backend, external, shop};
use crate::support::{
    Nginx, TokenKey, grpc_authorization, http_authorization, jwks, ports, seconds_from_now,
};
use serde_json::{Value, json};

/// Starts a gateway in front of a backend that responds with `right` and the header `x-role`, with these objects.
pub(super) fn started(objects: &[(&str, &str)]) -> Option<(Mesh, Nginx, u16)> {
    started_in("{}", objects)
}

/// Starts it in a mesh with this configuration.
fn started_in(mesh: &str, objects: &[(&str, &str)]) -> Option<(Mesh, Nginx, u16)> {
    switched(&[], mesh, objects)
}

/// Starts it with these environment variables for istiod.
fn switched(
    environment: &[(&'static str, &'static str)],
    mesh: &str,
    objects: &[(&str, &str)],
) -> Option<(Mesh, Nginx, u16)> {
    let nginx = Nginx::new("location / { return 200 \"right $http_x_role\"; }");
    let port = ports::free();
    let endpoints = format!("[ {{ address: 127.0.0.1, ports: {{ http: {} }} }} ]", nginx.address().port());
    let (shop, backend) = (shop(port), backend(&endpoints, ""));
    let all = [&[("shop", shop.as_str()), ("backend", backend.as_str())], objects].concat();
    let mut mesh = Mesh::switched(environment, mesh, &all)?;
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    Some((mesh, nginx, port))
}

/// Returns an Istio object for the gateway.
fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1
kind: {kind}
metadata: {{ name: {name}, namespace: istio-system }}
spec:
  selector: {{ matchLabels: {{ istio: ingressgateway }} }}
{spec}
"
    )
}

fn claims(subject: &str, role: &str) -> Value {
    let exp = seconds_from_now(600);
    json!({ "iss": "https://issuer.example", "sub": subject, "aud": "shop", "exp": exp, "role": role })
}

fn issuer(keys: &str) -> String {
    let rule = format!(
        "  jwtRules:
  - issuer: https://issuer.example
    audiences: [ shop ]
    jwks: '{keys}'
    outputClaimToHeaders: [ {{ header: x-role, claim: role }} ]"
    );
    object("RequestAuthentication", "tokens", &rule)
}

#[test]
fn tokens_and_what_they_say_let_clients_in() {
    let key = TokenKey::rsa("one", 2048);
    let policy = object(
        "AuthorizationPolicy",
        "admins",
        "  action: ALLOW
  rules:
  - from: [ { source: { requestPrincipals: [ 'https://issuer.example/alice' ] } } ]
    when: [ { key: 'request.auth.claims[role]', values: [ admin ] } ]
  - to: [ { operation: { paths: [ /public ] } } ]",
    );
    let objects = [("tokens", issuer(&jwks(&[&key]))), ("policy", policy)];
    let objects = objects.each_ref().map(|(name, text)| (*name, text.as_str()));
    let Some((mesh, _nginx, port)) = started(&objects) else { return };
    mesh.await_answer("shop-cert", "shop.example.com", port, "/public", "right  200");
    assert_eq!(mesh.refused(), Vec::<String>::new());
    let ask = |path: &str, token: &str| {
        let header = format!("Authorization: Bearer {token}");
        mesh.ask("shop-cert", "shop.example.com", port, path, &["-H", &header])
    };
    let denied = "RBAC: access denied 403";
    assert_eq!(mesh.get("shop-cert", "shop.example.com", port, "/"), denied);
    assert_eq!(ask("/", &key.token("RS256", &claims("alice", "admin"))), "right admin 200");
    assert_eq!(ask("/", &key.token("RS256", &claims("alice", "guest"))), denied);
    assert_eq!(ask("/", &key.token("RS256", &claims("bob", "admin"))), denied);
    // An invalid token is rejected even where no token is required.
    let mut expired = claims("alice", "admin");
    expired["exp"] = seconds_from_now(-600).into();
    assert_eq!(ask("/public", &key.token("RS256", &expired)), "Jwt is expired 401");
    let other = TokenKey::rsa("one", 2048);
    let forged = other.token("RS256", &claims("alice", "admin"));
    assert_eq!(ask("/public", &forged), "Jwt verification fails 401");
    let mut foreign = claims("alice", "admin");
    foreign["aud"] = "elsewhere".into();
    assert_eq!(ask("/", &key.token("RS256", &foreign)), "Audiences in Jwt are not allowed 403");
    // The issuer has a new key: the old one is no longer valid.
    mesh.configure("tokens", &issuer(&jwks(&[&other])));
    mesh.await_or_show("agent.log", || ask("/", &forged) == "right admin 200");
    let old = key.token("RS256", &claims("alice", "admin"));
    assert_eq!(ask("/", &old), "Jwt verification fails 401");
    assert_eq!(mesh.refused(), Vec::<String>::new());
    // Logs contain no part of a token.
    let log = mesh.log("agent.log");
    let parts = [&forged, &old].map(|token| token.rsplit('.').next().expect("a signature"));
    assert!(parts.iter().all(|part| !log.contains(part)), "{log}");
}

#[test]
fn requests_without_a_token_are_denied_and_tokens_of_two_issuers_are_accepted() {
    let (one, two) = (TokenKey::p256("one"), TokenKey::ed25519("two"));
    let issuers = object(
        "RequestAuthentication",
        "tokens",
        &format!(
            "  jwtRules:
  - {{ issuer: one, jwks: '{}' }}
  - {{ issuer: two, jwks: '{}', fromHeaders: [ {{ name: x-token }} ] }}",
            jwks(&[&one]),
            jwks(&[&two])
        ),
    );
    let policy = object(
        "AuthorizationPolicy",
        "user-1",
        "  action: DENY
  rules: [ { from: [ { source: { notRequestPrincipals: [ '*' ] } } ] } ]",
    );
    let Some((mesh, _nginx, port)) = started(&[("tokens", &issuers), ("policy", &policy)]) else { return };
    let ask = |arguments: &[&str]| mesh.ask("shop-cert", "shop.example.com", port, "/", arguments);
    mesh.await_or_show("agent.log", || ask(&[]) == "RBAC: access denied 403");
    let claims = |issuer: &str| json!({ "iss": issuer, "sub": "user-1" });
    let by_one = format!("Authorization: Bearer {}", one.token("ES256", &claims("one")));
    let by_two = format!("x-token: {}", two.token("EdDSA", &claims("two")));
    mesh.await_or_show("agent.log", || ask(&["-H", &by_one]) == "right  200");
    assert_eq!(ask(&["-H", &by_two]), "right  200");
    assert_eq!(ask(&["-H", &by_one, "-H", &by_two]), "right  200");
    let wrong = format!("x-token: {}", one.token("ES256", &claims("two")));
    assert_eq!(ask(&["-H", &wrong]), "Jwks doesn't have key to match kid or alg from Jwt 401");
    assert_eq!(mesh.refused(), Vec::<String>::new());
}

/// Istiod may delegate the fetching of token keys to gateways. It could not fetch them itself: the host exists only
/// in the mesh.
#[test]
fn keys_of_tokens_are_fetched_by_the_gateway() {
    let key = TokenKey::rsa("one", 2048);
    let keys = Nginx::new("");
    std::fs::write(keys.file("keys"), jwks(&[&key])).expect("a file");
    let service = external("keys.example.com", "HTTP", 9000, keys.address().port());
    let rule = "  jwtRules:
  - { issuer: 'https://issuer.example', jwksUri: 'http://keys.example.com:9000/keys' }";
    let (issuer, policy) = (
        object("RequestAuthentication", "tokens", rule),
        object(
            "AuthorizationPolicy",
            "user-1",
            "  action: DENY
  rules: [ { from: [ { source: { notRequestPrincipals: [ '*' ] } } ] } ]",
        ),
    );
    let objects = [("keys", service.as_str()), ("tokens", &issuer), ("policy", &policy)];
    let fetched = [("PILOT_JWT_ENABLE_REMOTE_JWKS", "envoy")];
    let Some((mesh, _nginx, port)) = switched(&fetched, "{}", &objects) else { return };
    let ask = |token: &str| {
        let header = format!("Authorization: Bearer {token}");
        mesh.ask("shop-cert", "shop.example.com", port, "/", &["-H", &header])
    };
    let mine = key.token("RS256", &claims("alice", "admin"));
    mesh.await_or_show("agent.log", || ask(&mine) == "right  200");
    let forged = TokenKey::rsa("one", 2048).token("RS256", &claims("alice", "admin"));
    assert_eq!(ask(&forged), "Jwt verification fails 401");
    assert_eq!(mesh.get("shop-cert", "shop.example.com", port, "/"), "RBAC: access denied 403");
    assert_eq!(mesh.refused(), Vec::<String>::new());
}

#[test]
fn an_authorization_server_decides() {
    let providers = "extensionProviders:
- name: by-grpc
  envoyExtAuthzGrpc: { service: grpc.example.com, port: 9000, timeout: 2s, includeRequestBodyInCheck: { maxRequestBytes: 8, allowPartialMessage: true } }
- name: by-http
  envoyExtAuthzHttp:
    service: http.example.com
    port: 9000
    timeout: 2s
    includeRequestHeadersInCheck: [ x-ext-authz ]
    includeRequestBodyInCheck: { maxRequestBytes: 8 }
    headersToUpstreamOnAllow: [ x-role ]
    headersToDownstreamOnDeny: [ x-client ]
";
    let policy = |provider: &str| {
        object(
            "AuthorizationPolicy",
            "asked",
            &format!(
                "  action: CUSTOM
  provider: {{ name: {provider} }}
  rules: [ {{ to: [ {{ operation: {{ paths: [ '/asked*' ] }} }} ] }} ]"
            ),
        )
    };
    let grpc = external("grpc.example.com", "GRPC", 9000, grpc_authorization().port());
    let http = external("http.example.com", "HTTP", 9000, http_authorization().port());
    let first = policy("by-grpc");
    let objects = [("grpc", grpc.as_str()), ("http", http.as_str()), ("policy", first.as_str())];
    let Some((mesh, _nginx, port)) = started_in(providers, &objects) else { return };
    let ask = |path: &str, decision: &str| {
        let header = format!("x-ext-authz: {decision}");
        mesh.ask("shop-cert", "shop.example.com", port, path, &["-H", &header])
    };
    // A denied request needs no backend, whose endpoints may arrive later.
    mesh.await_or_show("agent.log", || ask("/free", "allow") == "right  200");
    for provider in ["by-grpc", "by-http"] {
        mesh.configure("policy", &policy(provider));
        let by_http = provider == "by-http";
        let told = if by_http { "GET /asked" } else { "GET /asked shop.example.com" };
        mesh.await_or_show("agent.log", || {
            let answer = ask("/asked", "deny");
            answer.starts_with(told) && answer.ends_with(" 401") && answer.contains("https") != by_http
        });
        assert_eq!(ask("/asked", "allow"), "right  200");
        let posted = |body: &str| {
            mesh.ask(
                "shop-cert",
                "shop.example.com",
                port,
                "/asked",
                &["-H", "x-ext-authz: deny", "-d", body],
            )
        };
        assert!(posted("0123").contains("false 0123"), "{}", posted("0123"));
        let long = posted("0123456789");
        let expected = if by_http { "Payload Too Large" } else { "true 01234567" };
        assert!(long.contains(expected), "{long}");
        assert_eq!(ask("/asked", "fail"), " 403");
        assert_eq!(ask("/free", "fail"), "right  200");
    }
    // An unavailable server denies all requests.
    mesh.configure("http", &external("http.example.com", "HTTP", 9000, 1));
    mesh.await_or_show("agent.log", || ask("/asked", "allow") == " 403");
    assert_eq!(ask("/free", "allow"), "right  200");
    assert_eq!(mesh.refused(), Vec::<String>::new());
}
