//! Servers of Services.

use super::{ingress, translated};

fn service(spec: &str) -> String {
    format!("---\napiVersion: v1\nkind: Service\nmetadata: {{ name: app, namespace: shop }}\nspec: {spec}\n")
}

const SLICE: &str = "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: app-1\n  namespace: shop\n  labels: { \
                     kubernetes.io/service-name: app }\nports: [{ name: http, port: 8080 }]\nendpoints:\n- { addresses: [10.0.0.1], conditions: { \
                     ready: true } }\n- { addresses: [10.0.0.2], conditions: { ready: false } }\n- { addresses: [\"fd00::1\"] }\n";

#[test]
fn services_and_endpoints() {
    let ports = "{ ports: [{ name: http, port: 80, targetPort: 8080 }] }";
    for (text, annotations, expected) in [
        (String::new(), "", "servers: [\"app.shop.svc:80\"]"),
        (service(ports), "", "servers: [\"app.shop.svc:80\"]"),
        (service(ports) + SLICE, "", "servers: [\"10.0.0.1:8080\", \"[fd00::1]:8080\"]"),
        (service(ports) + SLICE, "service-upstream: \"true\"", "servers: [\"app.shop.svc:80\"]"),
        (
            service("{ clusterIP: None, ports: [{ port: 80, targetPort: 8080 }] }"),
            "",
            "servers: [\"app.shop.svc:8080\"]",
        ),
        (
            service("{ type: ExternalName, externalName: other.example }"),
            "",
            "servers: [\"other.example:80\"]",
        ),
    ] {
        let yaml = translated(&format!("{text}{}", ingress(annotations))).yaml;
        assert!(yaml.contains(expected), "{expected}\n{yaml}");
    }
}

#[test]
fn services_without_ready_endpoints_are_not_served() {
    let slice =
        SLICE.replace("10.0.0.1], conditions: { ready: true }", "10.0.0.1], conditions: { ready: false }");
    let slice = slice.replace("- { addresses: [\"fd00::1\"] }\n", "");
    let text = service("{ ports: [{ name: http, port: 80 }] }") + &slice + &ingress("");
    let yaml = translated(&text).yaml;
    assert!(yaml.contains("NOT SERVED: the Service shop/app has no ready endpoints"), "{yaml}");
}

#[test]
fn lists_and_json_are_read() {
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"apiVersion\": \"networking.k8s.io/v1\", \"kind\": \"Ingress\", \
                \"metadata\": {\"name\": \"web\", \"namespace\": \"shop\", \"annotations\": {\"nginx.ingress.kubernetes.io/app-root\": \"/home\"}}, \
                \"spec\": {\"rules\": [{\"host\": \"a.example\", \"http\": {\"paths\": [{\"path\": \"/\", \"pathType\": \"Prefix\", \"backend\": \
                {\"service\": {\"name\": \"app\", \"port\": {\"number\": 80}}}}]}}]}}]}";
    let translation = translated(json);
    assert!(translation.yaml.contains("path: /home"), "{}", translation.yaml);
    assert!(
        translation.report.to_string().contains("works differently: class: it has no class"),
        "{}",
        translation.report
    );
}
