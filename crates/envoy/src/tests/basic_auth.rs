//! HTTP Basic authentication: translation of the filter, and refused settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::model::{AccessStep, PasswordHashes, Serve};

const KIND: &str = "\"@type\": a/envoy.extensions.filters.http.basic_auth.v3.BasicAuth";
const USERS: &str = "users: { inline_string: \"a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\" }";

/// Returns a listener with this filter, whose only virtual host has these settings.
fn text(filter: &str, host: &str) -> String {
    with_route_config(&format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], typed_per_filter_config: {{ {host} }}, routes: [] }} ]"
    )) + &format!(
        "          http_filters: [ {{ name: envoy.filters.http.basic_auth, typed_config: {{ {KIND}, {filter} }} }} ]\n"
    )
}

#[test]
fn users_are_asked() {
    let gateway = gateway(&text(&format!("{USERS}, forward_username_header: X-User"), ""));
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    let [AccessStep::BasicAuth(Some(auth))] = &http.access[..] else { panic!("{:?}", http.access) };
    assert_eq!(auth.hashes, PasswordHashes::Sha1);
    assert_eq!(auth.user_header.as_ref().map(http::HeaderName::as_str), Some("x-user"));
    assert!(auth.forwards && auth.guesses.is_none(), "as in Envoy");
    assert!(
        auth.users_place.path.ends_with("http_filters[0].typed_config.users"),
        "{}",
        auth.users_place.path
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let per_route = "a/envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute";
    for (filter, host, expected) in [
        ("", String::new(), "`users` is missing"),
        ("users: {}", String::new(), "no field is set"),
        (&*format!("{USERS}, allow_missing: true"), String::new(), "allow requests without a password"),
        (&*format!("{USERS}, authentication_header: x-auth"), String::new(), "passwords are read from"),
        (&*format!("{USERS}, forward_username_header: 'a b'"), String::new(), "not a header name"),
        (&*format!("{USERS}, strength: 1"), String::new(), "does not know this field"),
        (
            USERS,
            format!("envoy.filters.http.basic_auth: {{ \"@type\": {per_route}, {USERS} }}"),
            "it may control access to some routes",
        ),
        (
            USERS,
            "envoy.filters.http.basic_auth: { \"@type\": a/envoy.config.route.v3.FilterConfig, disabled: true }".to_owned(),
            "it may control access to some routes",
        ),
    ] {
        let found = problems(&text(filter, &host));
        assert!(found.contains(expected), "{found}\nis not: {expected}");
    }
}
