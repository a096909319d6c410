//! RBAC rules: translation, and refused conditions.

use super::{gateway, http_rbac, only_chain, problems, warnings, with_route_config};
use quadrille_config::model::{AccessAction, AccessCondition, AccessRules, AccessStep, Serve};

const ANY: &str = "any: true";

/// Returns a listener with these HTTP rules.
fn with_rules(rules: &str) -> String {
    with_route_config("virtual_hosts: []") + &http_rbac(rules)
}

/// Returns one policy with this permission and this principal.
fn policy(permission: &str, principal: &str) -> String {
    with_rules(&format!(
        "policies: {{ one: {{ permissions: [ {{ {permission} }} ], principals: [ {{ {principal} }} ] }} }}"
    ))
}

fn rules(text: &str) -> Vec<AccessRules> {
    let gateway = gateway(text);
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    http.access.iter().filter_map(AccessStep::rules).cloned().collect()
}

#[test]
fn policies_are_asked_in_the_order_of_their_names() {
    let one = "{ permissions: [ { any: true } ], principals: [ { any: true } ] }";
    let [rules] = &rules(&with_rules(&format!("action: DENY\npolicies: {{ b: {one}, a: {one} }}")))[..]
    else {
        panic!("not one")
    };
    assert_eq!(rules.action, AccessAction::Deny);
    let names: Vec<_> = rules.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(rules.policies[0].permissions, [AccessCondition::Always]);
}

#[test]
fn rules_without_effect_are_dropped() {
    assert!(rules(&with_rules("action: LOG\npolicies: {}")).is_empty());
    let shadow = with_rules("{}").replace("              rules:\n", "              shadow_rules:\n");
    assert!(rules(&shadow).is_empty());
    let [absent] = &rules(&with_rules("action: ALLOW"))[..] else { panic!("not one") };
    assert!(absent.policies.is_empty(), "no request is allowed");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (permission, principal, said) in [
        ("metadata: { filter: f }", ANY, "[0].metadata.filter: refused: `f` writes no metadata here"),
        (ANY, "metadata: { filter: istio_authn }", "principals[0].metadata.filter: refused"),
        (ANY, "metadata: { filter: envoy.filters.http.jwt_authn }", "`path` is missing"),
        (
            ANY,
            "metadata: { filter: envoy.filters.http.jwt_authn, path: [ { key: p } ] }",
            "`value` is missing",
        ),
        (
            ANY,
            "metadata: { filter: envoy.filters.http.jwt_authn, path: [ { key: p } ], value: { double_match: { exact: 1 } } }",
            "value.double_match: refused",
        ),
        (
            ANY,
            "metadata: { filter: envoy.filters.http.jwt_authn, path: [ { key: p } ], value: { or_match: {} } }",
            "`value_matchers` is empty",
        ),
        (ANY, "filter_state: { key: k }", "principals[0].filter_state: refused"),
        ("matcher: { name: m }", ANY, "permissions[0].matcher: refused"),
        ("moon: full", ANY, "permissions[0].moon: refused: Quadrille does not know this field"),
        ("any: false", ANY, "`any` must be `true` or omitted"),
        ("", ANY, "no supported field is set"),
        ("and_rules: { rules: [] }", ANY, "`rules` is empty"),
        (ANY, "source_ip: { address_prefix: 10.0.0.0, prefix_len: 33 }", "does not have 33 bits"),
        (ANY, "source_ip: { address_prefix: ten, prefix_len: 8 }", "not an IP address"),
    ] {
        let found = problems(&policy(permission, principal));
        assert!(found.contains(said), "{permission} {principal}: {found}");
    }
    let condition = with_rules(
        "policies: { one: { permissions: [ { any: true } ], principals: [ { any: true } ], condition: { const_expr: {} } } }",
    );
    assert!(problems(&condition).contains("policies.one.condition: refused: CEL is not supported"));
    assert!(problems(&with_rules("action: ASK")).contains("use ALLOW, DENY, LOG"));
}

#[test]
fn the_client_behind_proxies_is_not_known_here() {
    let remote = policy(ANY, "remote_ip: { address_prefix: 10.0.0.0, prefix_len: 8 }");
    let (ours, hops) = ("          use_remote_address: true\n", "          xff_num_trusted_hops: 1\n");
    assert_eq!(rules(&(remote.clone() + ours)).len(), 1);
    for text in [remote.clone(), remote + ours + hops] {
        assert!(problems(&text).contains("`remote_ip` is refused"), "{text}");
    }
    let direct = policy(ANY, "direct_remote_ip: { address_prefix: 10.0.0.0, prefix_len: 8 }");
    assert!(
        warnings(&(direct.clone() + hops))[0]
            .contains("xff_num_trusted_hops): no effect on `x-forwarded-for`")
    );
    let announced = direct.replace(
        "    filter_chains:",
        "    listener_filters: [ { name: envoy.filters.listener.proxy_protocol } ]\n    filter_chains:",
    );
    assert!(problems(&announced).contains("`direct_remote_ip` with the PROXY protocol"));
}

#[test]
fn rules_for_a_part_of_the_routes_are_refused() {
    let per_route = |settings: &str| {
        with_route_config(&format!("virtual_hosts: []\ntyped_per_filter_config: {{ {settings} }}"))
    };
    for settings in [
        "envoy.filters.http.rbac: { \"@type\": a/x.Other }",
        "mine: { \"@type\": a/envoy.extensions.filters.http.rbac.v3.RBACPerRoute }",
        "mine: { \"@type\": a/envoy.config.route.v3.FilterConfig, config: { \"@type\": a/envoy.extensions.filters.http.rbac.v3.RBACPerRoute } }",
        "mine: { \"@type\": a/envoy.config.route.v3.FilterConfig }",
        "mine: { \"@type\": a/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig, disabled: true }",
        "envoy.filters.http.ext_authz: { \"@type\": a/x.Other }",
    ] {
        assert!(problems(&per_route(settings)).contains("it may control access"), "{settings}");
    }
    for settings in [
        "mine: { \"@type\": a/acme.Other }",
        "mine: { \"@type\": a/envoy.config.route.v3.FilterConfig, disabled: true }",
    ] {
        assert!(warnings(&per_route(settings))[0].contains("ignored"), "{settings}");
    }
}

#[test]
fn a_connection_has_no_headers() {
    let text = with_route_config("virtual_hosts: []").replace(
        "    - filters:\n",
        "    - filters:\n      - name: rbac\n        typed_config: { \"@type\": a/envoy.extensions.filters.network.rbac.v3.RBAC, rules: { policies: { one: { permissions: [ PERMISSION ], principals: [ { any: true } ] } } } }\n",
    );
    let header = text.replace("PERMISSION", "{ header: { name: a } }");
    assert!(problems(&header).contains("a connection has no headers, no path and no tokens"));
    let gateway = gateway(&text.replace("PERMISSION", "{ destination_port: 8080 }"));
    let [rules] = &only_chain(&gateway).access[..] else { panic!("not one") };
    assert_eq!(rules.policies[0].permissions, [AccessCondition::LocalPort(8080, 8081)]);
}
