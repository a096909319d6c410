//! Gateway API objects.

use super::{ingress, objects};
use crate::{Options, gateway_api};

fn made(text: &str) -> String {
    let made = gateway_api(&objects(text), &Options::default());
    quadrille_config::yaml::documents(&made, quadrille_config::yaml::Limits::BY_PROGRAM).expect("YAML");
    made
}

#[test]
fn rules_have_filters_and_weights() {
    let main = ingress(
        "enable-cors: \"true\"\ncors-allow-origin: https://b.example\nproxy-read-timeout: \"5\"\nupstream-vhost: app.internal\nlimit-rate: \"5\"",
    );
    let canary = ingress("canary: \"true\"\ncanary-weight: \"20\"\ncanary-by-header: X-Canary")
        .replace("name: web", "name: canary");
    let made = made(&(main + &canary));
    for expected in [
        "kind: Gateway\n",
        "gatewayClassName: quadrille",
        "kind: HTTPRoute\n",
        "hostnames: [a.example]",
        "type: CORS",
        "hostname: app.internal",
        "weight: 80",
        "weight: 20",
        "backendRequest: 5s",
        "# limit-rate: Gateway API has no field for it",
    ] {
        assert!(made.contains(expected), "{expected}\n{made}");
    }
}

#[test]
fn redirects_and_rewrites() {
    let root = made(&ingress("app-root: /home\nforce-ssl-redirect: \"true\""));
    assert!(root.contains("replaceFullPath: /home") && root.contains("scheme: https"), "{root}");
    let groups = ingress("rewrite-target: /$2").replace("path: /,", "path: \"/app(/|$)(.*)\",");
    let groups = made(&groups);
    assert!(groups.contains("replacePrefixMatch: /") && groups.contains("value: /app"), "{groups}");
    let permanent = made(&ingress("permanent-redirect: https://new.example$request_uri"));
    assert!(
        permanent.contains("hostname: new.example") && permanent.contains("statusCode: 301"),
        "{permanent}"
    );
}

#[test]
fn guarded_rules_have_no_backend() {
    for guard in [
        "auth-type: basic",
        "auth-url: http://auth.example/",
        "allowlist-source-range: 10.0.0.0/8",
        "auth-tls-secret: shop/ca",
        "configuration-snippet: \"deny all;\"",
        "limit-rps: \"5\"",
        "enable-modsecurity: \"true\"",
    ] {
        let made = made(&ingress(guard));
        assert!(made.contains("# CLOSED: "), "{guard}\n{made}");
        let open = made
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .any(|line| line.contains("backendRefs"));
        assert!(!open, "{guard}\n{made}");
    }
}
