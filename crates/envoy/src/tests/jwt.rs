//! The JSON Web Token filter: translation, and refused settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::model::{AccessStep, JwtAuthentication, JwtLocation, JwtRequirement, Serve};
use std::sync::Arc;

/// Returns a listener with this filter.
fn with_filter(filter: &str) -> String {
    with_route_config("virtual_hosts: []")
        + &format!(
            "          http_filters:
          - name: envoy.filters.http.jwt_authn
            typed_config: {{ \"@type\": a/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication, {filter} }}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
"
        )
}

fn read(filter: &str) -> Arc<JwtAuthentication> {
    let gateway = gateway(&with_filter(filter));
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    let [AccessStep::Jwt(jwt)] = &http.access[..] else { panic!("not one step") };
    Arc::clone(jwt)
}

const PROVIDER: &str = "issuer: i, local_jwks: { inline_string: '{}' }";

#[test]
fn what_istiod_sends() {
    let jwt = read(&format!(
        "bypass_cors_preflight: true, providers: {{ origins-0: {{ {PROVIDER}, payload_in_metadata: payload, \
         normalize_payload_in_metadata: {{ space_delimited_claims: [ scope, permission ] }} }} }}, rules: [ {{ match: {{ \
         prefix: / }}, requires: {{ requires_any: {{ requirements: [ {{ provider_name: origins-0 }}, {{ allow_missing: \
         {{}} }} ] }} }} }} ]"
    ));
    let [provider] = &jwt.providers[..] else { panic!("{jwt:?}") };
    assert_eq!(provider.leeway.as_secs(), 60);
    assert_eq!(
        provider.locations,
        [
            JwtLocation::Header("authorization".into(), "Bearer ".into()),
            JwtLocation::Parameter("access_token".into())
        ]
    );
    let any = JwtRequirement::Any(vec![JwtRequirement::Provider(0, vec![]), JwtRequirement::AllowMissing]);
    assert_eq!(jwt.rules[0].requirement, Some(any));
    assert!(jwt.bypass_preflights && !provider.forward);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let requires = |requirement: &str| {
        format!(
            "providers: {{ p: {{ {PROVIDER} }} }}, rules: [ {{ match: {{ prefix: / }}, {requirement} }} ]"
        )
    };
    for (filter, said) in [
        ("providers: { p: { issuer: i } }".to_owned(), "`local_jwks` or `remote_jwks` is missing"),
        (
            "providers: { p: { remote_jwks: { http_uri: { cluster: keys, uri: /keys } } } }".into(),
            "`/keys` is not an absolute URI; write `https://issuer.example/.well-known/jwks.json`",
        ),
        (format!("providers: {{ p: {{ {PROVIDER}, subjects: {{ exact: a }} }} }}"), "subjects: refused"),
        (
            format!("providers: {{ p: {{ {PROVIDER}, from_headers: [ {{ name: 'a b' }} ] }} }}"),
            "is not a header name",
        ),
        ("providers: [ 1 ]".into(), "expected a mapping by name"),
        ("filter_state_rules: { name: a }".into(), "filter_state_rules: refused"),
        ("moon: full".into(), "moon: refused: Quadrille does not know this field"),
        (requires("requires: { provider_name: q }"), "unknown provider `q`"),
        (requires("requires: {}"), "no field is set"),
        (requires("requires: { requires_any: {} }"), "`requirements` is empty"),
        (requires("requires: { requires_all: { requirements: [] } }"), "`requirements` is empty"),
        (requires("requirement_name: n"), "`requirement_map` does not contain this requirement"),
        (requires("requires: { extracted: true }"), "extracted: refused"),
    ] {
        let found = problems(&with_filter(&filter));
        assert!(found.contains(said), "{filter}: {found}");
    }
}
