//! Objects of a watched cluster.

use crate::{Objects, Options, State, Translation, insert_secrets, translate};
use quadrille_config::model::{KeySource, Source};
use serde_json::{Value, json};
use zeroize::Zeroizing;

fn ingress(host: &str) -> Value {
    let backend = json!({ "service": { "name": "app", "port": { "number": 80 } } });
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "web", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "ingressClassName": "nginx", "tls": [{ "hosts": [host], "secretName": "tls" }],
            "rules": [{ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } }],
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "app", "namespace": "shop" },
        "spec": { "ports": [{ "name": "http", "port": 80 }] },
    })
}

fn slice(endpoints: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "app-1", "namespace": "shop", "labels": { "kubernetes.io/service-name": "app" } },
        "ports": [{ "name": "http", "port": 8080 }], "endpoints": endpoints,
    })
}

fn cluster() -> Objects {
    let mut objects = Objects::of_cluster();
    objects.put(&ingress("a.example"));
    objects.put(&service());
    objects.put(&slice(&json!([{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }])));
    objects
}

fn translated(objects: &Objects) -> Translation {
    let options = Options { by_reference: true, ..Options::default() };
    translate(objects, &options).expect("a translation")
}

#[test]
fn an_object_replaces_the_one_of_its_name() {
    let mut objects = cluster();
    assert!(translated(&objects).yaml.contains("a.example"));
    objects.put(&ingress("b.example"));
    let Translation { yaml, served, .. } = translated(&objects);
    assert!(yaml.contains("b.example") && !yaml.contains("a.example"), "{yaml}");
    assert_eq!(served, [("shop".to_owned(), "web".to_owned())]);
    objects.remove("Ingress", "other", "web");
    assert_eq!(translated(&objects).served.len(), 1);
    objects.remove("Ingress", "shop", "web");
    assert!(translated(&objects).served.is_empty());
}

#[test]
fn services_that_are_not_in_the_cluster_do_not_exist() {
    let mut objects = cluster();
    let mut plain = ingress("a.example");
    plain["spec"]["tls"] = json!([]);
    objects.put(&plain);
    objects.remove("Service", "shop", "app");
    let yaml = translated(&objects).yaml;
    assert!(yaml.contains("NOT SERVED: the Service shop/app does not exist"), "{yaml}");
    objects.put(&service());
    objects.remove("EndpointSlice", "shop", "app-1");
    let yaml = translated(&objects).yaml;
    assert!(yaml.contains("NOT SERVED: the Service shop/app has no ready endpoints"), "{yaml}");
}

#[test]
fn endpoints_that_terminate_serve_while_there_are_no_others() {
    let mut objects = cluster();
    let leaving = json!({ "ready": false, "serving": true, "terminating": true });
    let ready = json!({ "addresses": ["10.0.0.2"], "conditions": { "ready": true } });
    objects.put(&slice(&json!([{ "addresses": ["10.0.0.1"], "conditions": leaving }])));
    assert!(translated(&objects).yaml.contains("servers: [\"10.0.0.1:8080\"]"));
    objects.put(&slice(&json!([{ "addresses": ["10.0.0.1"], "conditions": leaving }, ready])));
    assert!(translated(&objects).yaml.contains("servers: [\"10.0.0.2:8080\"]"));
}

#[test]
fn certificates_are_inserted_after_the_translation() {
    let pem = |label: &str, text: &str| {
        Zeroizing::new(format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n").into_bytes())
    };
    let mut objects = cluster();
    let problem = |translation: &Translation| {
        let entries = translation.report.objects.iter().flat_map(|one| &one.entries);
        let mut refused =
            entries.filter(|entry| entry.state == State::Refused).map(|entry| entry.text.clone());
        refused.next().unwrap_or_default()
    };
    assert!(problem(&translated(&objects)).contains("shop/tls does not exist"));
    let values = |key: Zeroizing<Vec<u8>>| {
        vec![("tls.crt".to_owned(), pem("CERTIFICATE", "Y2hhaW4=")), ("tls.key".to_owned(), key)]
    };
    objects.put_secret("shop", "tls", values(Zeroizing::new(b"\xff".to_vec())));
    assert!(problem(&translated(&objects)).contains("`tls.key` is not text"));
    objects.put_secret("shop", "tls", values(pem("PRIVATE KEY", "c2VjcmV0")));
    let mut translation = translated(&objects);
    assert_eq!(problem(&translation), "");
    let Translation { yaml, model, .. } = &mut translation;
    assert!(!yaml.contains("c2VjcmV0") && !yaml.contains("Y2hhaW4="), "{yaml}");
    insert_secrets(model, &objects);
    let chains = model.listeners.iter().flat_map(quadrille_config::model::Listener::all_chains);
    let tls: Vec<_> = chains.filter_map(|chain| chain.tls.as_ref()).collect();
    let certificate = &tls[0].certificates[0];
    let KeySource::Pem(Source::Inline(key)) = &certificate.key else { panic!("{:?}", certificate.chain) };
    assert!(String::from_utf8_lossy(key).contains("c2VjcmV0"));
    assert!(matches!(&certificate.chain, Source::Inline(_)));
}
