//! Fields that would weaken security if ignored are refused, with their path.

use super::{CERTIFICATE, problems, with_common, with_route_config, with_routes, with_tls};

const COMMON: &str =
    "static_resources.listeners[0].filter_chains[0].transport_socket.typed_config.common_tls_context";

fn common(fields: &str) -> String {
    problems(&with_common(&format!("{CERTIFICATE}\n{fields}")))
}

#[test]
fn unknown_fields_of_tls_have_their_path_and_line() {
    let found = common("future_protection: { on: true }");
    assert!(found.starts_with(&format!("e.yaml:13: {COMMON}.future_protection: refused: ")), "{found}");
    for (fields, path) in [
        (
            "validation_context: { trusted_ca: { filename: /ca }, allow_expired_certificate: true }",
            "validation_context.allow_expired_certificate",
        ),
        (
            "validation_context: { trusted_ca: { filename: /ca }, max_verify_depth: 0 }",
            "validation_context.max_verify_depth",
        ),
        (
            "validation_context: { trusted_ca: { filename: /ca }, custom_validator_config: { name: x } }",
            "validation_context.custom_validator_config",
        ),
        ("tls_params: { compliance_policies: [ FIPS_202205 ] }", "tls_params.compliance_policies"),
        ("custom_handshaker: { name: x }", "custom_handshaker"),
    ] {
        let found = common(fields);
        assert!(found.contains(&format!("{COMMON}.{path}: refused: ")), "{found}");
    }
}

#[test]
fn providers_that_are_not_there() {
    let provider = |rest: &str| {
        format!(
            "tls_certificates:\n  certificate_chain: {{ filename: /c }}\n  private_key_provider:\n    provider_name: hsm\n    typed_config: {{ \"@type\": type.googleapis.com/acme.Hsm }}\n{rest}"
        )
    };
    let found = problems(&with_common(&provider("")));
    assert!(
        found.contains(&format!(
            "{COMMON}.tls_certificates.private_key_provider: refused: provider `hsm` (acme.Hsm) is not"
        )),
        "{found}"
    );
    let fallen = with_common(&provider("    fallback: true\n  private_key: { filename: /k }"));
    assert_eq!(super::tls(&super::gateway(&fallen)).certificates[0].key.to_string(), "/k");
    assert!(super::warnings(&fallen)[0].contains("`private_key` is used because of `fallback`"));
}

#[test]
fn clients_certificates_must_prove_something() {
    let context = |validation: &str| {
        with_tls(&format!(
            "require_client_certificate: true\ncommon_tls_context:\n  {CERTIFICATE}\n  {validation}"
        ))
    };
    assert!(problems(&context("")).contains("would accept every certificate"));
    let names =
        "validation_context: { match_typed_subject_alt_names: [ { san_type: DNS, matcher: { exact: a } } ] }";
    assert!(problems(&context(names)).contains("prove nothing without a `trusted_ca`"));
}

#[test]
fn filters_that_let_clients_in() {
    let http = |kind: &str| {
        with_routes("- { match: { prefix: / }, direct_response: { status: 200 } }")
            + &format!(
                "          http_filters:\n          - name: x\n            typed_config: {{ \"@type\": type.googleapis.com/{kind} }}\n"
            )
    };
    for kind in [
        "envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth",
        "envoy.extensions.filters.http.oauth2.v3.OAuth2",
        "envoy.extensions.filters.http.lua.v3.Lua",
        "acme.SomethingNew",
    ] {
        let found = problems(&http(kind));
        assert!(
            found.contains(&format!(
                "filters[0].typed_config.http_filters[0]: the filter `{kind}` is refused"
            )) || found.contains("is refused: Quadrille does not know it"),
            "{found}"
        );
    }
    let optional = http("acme.SomethingNew").replace("- name: x", "- name: x\n            is_optional: true");
    assert!(super::warnings(&optional)[0].contains("is unknown but optional"));
    let authz = http("envoy.extensions.filters.http.oauth2.v3.OAuth2")
        .replace("- name: x", "- name: x\n            is_optional: true");
    assert!(problems(&authz).contains("it controls access"), "even an optional one");
}

#[test]
fn what_is_not_served_says_so() {
    let filter = |kind: &str| {
        with_routes("- { match: { prefix: / }, direct_response: { status: 200 } }")
            + &format!(
                "          http_filters:\n          - {{ name: x, typed_config: {{ \"@type\": a/{kind} }} }}\n"
            )
    };
    let code = "the behavior of its code is unknown";
    for (text, expected) in [
        (filter("envoy.extensions.filters.http.wasm.v3.Wasm"), code),
        (filter("envoy.extensions.filters.http.lua.v3.Lua"), code),
    ] {
        let found = problems(&text);
        assert!(found.contains(expected), "{found}\nis not: {expected}");
    }
}

#[test]
fn conditions_that_are_not_known() {
    let found = problems(&with_routes(
        "- { match: { prefix: /, moon_phase: full }, direct_response: { status: 200 } }",
    ));
    assert!(
        found.contains("routes[0].match.moon_phase: refused: Quadrille does not know this condition"),
        "{found}"
    );
}

#[test]
fn ordinary_mistakes_say_what_to_do() {
    for (text, expected) in [
        (
            with_routes("- { match: { prefix: / } }"),
            "no action is set; write `route`, `redirect` or `direct_response`",
        ),
        (
            with_routes("- { match: { prefix: /, path: / }, direct_response: { status: 200 } }"),
            "only one of them is allowed",
        ),
        (
            with_routes("- { match: { safe_regex: { regex: '(' } }, direct_response: { status: 200 } }"),
            "not a supported regular expression: unclosed group",
        ),
        (
            with_routes("- { match: { prefix: / }, redirect: { response_code: TEAPOT } }"),
            "`TEAPOT` is not supported here; use MOVED_PERMANENTLY",
        ),
        (with_routes("- { match: { prefix: / }, direct_response: { status: 99 } }"), "use 200 to 599"),
        (
            with_routes(
                "- { match: { prefix: / }, route: { cluster: a, prefix_rewrite: /x, regexRewrite: { pattern: { regex: a } } } }",
            ),
            "only one of them is allowed",
        ),
        (
            with_route_config(
                "virtual_hosts: [ { name: a, domains: [x], routes: [] }, { name: b, domains: [X], routes: [] } ]",
            ),
            "the domain `x` already belongs to `a`",
        ),
        (
            with_route_config("virtual_hosts: [ { name: a, domains: ['a*b'], routes: [] } ]"),
            "`a*b` is not a domain",
        ),
        (
            with_common("tls_certificates: { certificate_chain: { filename: /c } }"),
            "`private_key` or `private_key_provider` is missing",
        ),
        (
            with_common(
                "tls_certificates: { certificate_chain: { environment_variable: QUADRILLE_NOT_SET }, private_key: { filename: /k } }",
            ),
            "the environment variable `QUADRILLE_NOT_SET` is not set",
        ),
        (with_common("tls_certificate_sds_secret_configs: { name: gone }"), "there is no secret `gone`"),
        ("a: [b".to_owned(), "e.yaml:2: not valid YAML"),
        (String::new(), "the file is empty"),
    ] {
        let found = problems(&text);
        assert!(found.contains(expected), "{found}\nis not: {expected}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let found = problems(&with_routes(
        "- { match: { prefix: / } }\n- { match: {}, direct_response: { status: 200 } }\n- { match: { prefix: / }, redirect: { scheme_redirect: ftp } }",
    ));
    assert_eq!(found.lines().count(), 3, "{found}");
}
