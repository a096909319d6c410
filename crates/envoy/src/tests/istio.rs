//! Resolution of private key providers.

use crate::istio::{ProviderKind, Reason, resolve_texts};

const MESH: &str = "defaultConfig: { privateKeyProvider: { cryptomb: { pollDelay: 10ms, fallback: true } } }";

fn pod(annotation: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: n\n  annotations:\n    proxy.istio.io/config: '{annotation}'\n"
    )
}

#[test]
fn a_pods_value_replaces_the_default_whole() {
    let pod = pod("privateKeyProvider: { cryptomb: { pollDelay: 2ms } }");
    let found = resolve_texts(&[("mesh.yaml", MESH), ("pod.yaml", &pod)]).unwrap();
    let effective = found.proxies[0].effective.as_ref().unwrap();
    assert_eq!(effective.poll_delay.as_millis(), 2);
    assert!(!effective.fallback, "the default is not merged");
    assert!(
        found.to_string().contains("replaces the mesh's default (cryptomb, pollDelay 10ms, with fallback)")
    );
    assert_eq!(found.json()["proxies"][0]["reason"], "pod");
}

#[test]
fn another_provider_replaces_it_too() {
    let pod = pod("privateKeyProvider: { qat: { pollDelay: 2ms } }");
    let found = resolve_texts(&[("mesh.yaml", MESH), ("pod.yaml", &pod)]).unwrap();
    assert_eq!(found.proxies[0].effective.as_ref().unwrap().kind, ProviderKind::Qat);
}

#[test]
fn an_annotation_about_something_else_leaves_the_default() {
    let found = resolve_texts(&[("mesh.yaml", MESH), ("pod.yaml", &pod("concurrency: 2"))]).unwrap();
    assert!(matches!(found.proxies[0].reason, Reason::Mesh(_)));
    assert_eq!(found.proxies[0].effective.as_ref().unwrap().kind, ProviderKind::CryptoMb);
}

#[test]
fn the_order_of_files_and_documents_does_not_matter() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: istio }\ndata:\n  mesh: |\n    defaultConfig:\n      privateKeyProvider: { qat: { pollDelay: 3ms } }\n";
    let deployment =
        "kind: Deployment\nmetadata: { name: d }\nspec: { template: { metadata: { labels: { a: b } } } }\n";
    let text = format!("{deployment}---\n{map}---\nkind: Service\nmetadata: {{ name: s }}\n");
    let found = resolve_texts(&[("all.yaml", &text)]).unwrap();
    assert_eq!(found.proxies.len(), 1, "a service has no proxy");
    assert_eq!(found.proxies[0].effective.as_ref().unwrap().kind, ProviderKind::Qat);
}

#[test]
fn seconds_are_lost_and_it_is_said() {
    let found = resolve_texts(&[("mesh.yaml", &MESH.replace("10ms", "1.5s"))]).unwrap();
    let lines = found.warnings.lines();
    assert!(lines[0].contains("1500ms reaches the proxy as 500ms"), "{lines:?}");
    assert_eq!(found.json()["mesh"]["provider"]["delivered_poll_delay"], "500ms");
}

#[test]
fn mistakes_have_their_place() {
    for (file, text, expected) in [
        (
            "m.yaml",
            MESH.replace("cryptomb", "criptomb"),
            "m.yaml:1: defaultConfig.privateKeyProvider.criptomb: refused",
        ),
        ("m.yaml", MESH.replace("10ms", "soon"), "`soon` is not a duration"),
        ("m.yaml", MESH.replace("pollDelay: 10ms, ", ""), "`poll_delay` is missing"),
        ("p.yaml", pod("privateKeyProvider: {}"), "no provider is set"),
        (
            "p.yaml",
            pod("a: [b"),
            "p.yaml:7: metadata.annotations.proxy.istio.io/config: line 2 of the text: not valid YAML",
        ),
        ("m.yaml", format!("{MESH}\n---\n{MESH}"), "a second mesh default"),
    ] {
        let error = resolve_texts(&[(file, &text)]).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
