//! Examples published by Envoy and Istio, unchanged.

use super::{gateway, indented, tls, warnings, with_tls};
use crate::istio::{ProviderKind, Reason, resolve_texts};
use quadrille_config::model::KeySource;
use std::time::Duration;

/// Envoy's page on TLS: one mapping where the schema has a list.
const KEY_IN_A_FILE: &str = include_str!("published/key-in-a-file.yaml");

/// Envoy's page on CryptoMB.
const CRYPTOMB: &str = include_str!("published/cryptomb.yaml");

fn bootstrap(fragment: &str) -> String {
    with_tls(&format!("common_tls_context:\n{}", indented(fragment, 2)))
}

#[test]
fn a_key_in_a_file() {
    let gateway = gateway(&bootstrap(KEY_IN_A_FILE));
    let [certificate] = tls(&gateway).certificates.as_slice() else { panic!("not one certificate") };
    assert_eq!(certificate.chain.to_string(), "/path/cert.pem");
    assert_eq!(certificate.key.to_string(), "/path/key.pem");
    assert_eq!(certificate.poll_delay, None, "no delay is configured");
}

#[test]
fn the_key_with_cryptomb() {
    let gateway = gateway(&bootstrap(CRYPTOMB));
    let [certificate] = tls(&gateway).certificates.as_slice() else { panic!("not one certificate") };
    let KeySource::Pem(key) = &certificate.key else { panic!("not here") };
    assert_eq!(key.to_string(), "/path/key.pem");
    assert_eq!(certificate.poll_delay, Some(Duration::from_millis(10)));
    assert_eq!(gateway.engine.poll_delay, Duration::ZERO, "the delay is the key's, not the process's");
    assert_eq!(gateway.engine.batch.get(), 8, "a worker's buffer holds 8 operations");
    assert_eq!(warnings(&bootstrap(CRYPTOMB)), Vec::<String>::new());
}

#[test]
fn the_delay_as_people_write_it_as_protobuf_does_and_as_its_json_names_it() {
    for (from, to, delay) in [
        ("poll_delay: 10ms", "poll_delay: 0.010s", Duration::from_millis(10)),
        ("poll_delay: 10ms", "pollDelay: \"0.000200s\"", Duration::from_micros(200)),
        ("poll_delay: 10ms", "poll_delay: { seconds: 0, nanos: 5000000 }", Duration::from_millis(5)),
        ("poll_delay: 10ms", "poll_delay: 0", Duration::ZERO),
        ("poll_delay: 10ms", "poll_delay: 0s", Duration::ZERO),
        ("v3alpha", "v3", Duration::from_millis(10)),
    ] {
        let text = bootstrap(CRYPTOMB).replace(from, to);
        assert_eq!(tls(&gateway(&text)).certificates[0].poll_delay, Some(delay), "{to}");
    }
}

#[test]
fn qat_has_the_same_fields() {
    let text = bootstrap(CRYPTOMB)
        .replace("provider_name: cryptomb", "provider_name: qat")
        .replace("cryptomb.v3alpha.CryptoMb", "qat.v3alpha.Qat")
        .replace("poll_delay: 10ms", "poll_delay: 0.002s");
    let gateway = gateway(&text);
    assert_eq!(tls(&gateway).certificates[0].key.to_string(), "/path/key.pem");
    assert_eq!(tls(&gateway).certificates[0].poll_delay, None, "no card is polled every 2 ms");
}

/// Istio configuration for the whole mesh.
const MESH: &str = "apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
metadata: { namespace: istio-system, name: example-istiocontrolplane }
spec:
  profile: demo
  components:
    egressGateways:  [ { name: istio-egressgateway,  enabled: true } ]
    ingressGateways: [ { name: istio-ingressgateway, enabled: true } ]
  meshConfig:
    defaultConfig:
      privateKeyProvider: { cryptomb: { pollDelay: 10ms } }
";

/// Istio configuration for the ingress gateway only.
const INGRESS: &str = "apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
metadata: { namespace: istio-system, name: example-istiocontrolplane }
spec:
  profile: demo
  components:
    egressGateways:
    - { name: istio-egressgateway,  enabled: true }
    ingressGateways:
    - name: istio-ingressgateway
      enabled: true
      k8s:
        podAnnotations:
          proxy.istio.io/config: |
            privateKeyProvider:
              cryptomb:
                pollDelay: 10ms
";

/// Istio configuration for one application.
const APPLICATION: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: httpbin }
spec:
  template:
    metadata:
      annotations:
        proxy.istio.io/config: |
          privateKeyProvider:
            cryptomb:
              pollDelay: 10ms
";

#[test]
fn istio_for_the_whole_mesh() {
    let found = resolve_texts(&[("operator.yaml", MESH)]).unwrap();
    assert_eq!(found.mesh.as_ref().unwrap().0.poll_delay, Duration::from_millis(10));
    let names: Vec<_> = found.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    assert_eq!(names, ["istio-ingressgateway", "istio-egressgateway"]);
    for proxy in &found.proxies {
        assert_eq!(proxy.effective.as_ref().unwrap().kind, ProviderKind::CryptoMb);
        assert!(matches!(proxy.reason, Reason::Mesh(_)));
    }
}

#[test]
fn istio_for_the_ingress_gateway_only() {
    let found = resolve_texts(&[("operator.yaml", INGRESS)]).unwrap();
    assert!(found.mesh.is_none());
    let [ingress, egress] = found.proxies.as_slice() else { panic!("{found:?}") };
    assert_eq!(ingress.effective.as_ref().unwrap().poll_delay, Duration::from_millis(10));
    assert!(matches!(ingress.reason, Reason::Pod(_)));
    assert!(egress.effective.is_none() && matches!(egress.reason, Reason::NotNamed));
}

#[test]
fn istio_for_one_application() {
    let found = resolve_texts(&[("app.yaml", APPLICATION)]).unwrap();
    let [pod] = found.proxies.as_slice() else { panic!("{found:?}") };
    assert_eq!((pod.kind.as_str(), pod.name.as_str()), ("Deployment", "httpbin"));
    assert_eq!(pod.effective.as_ref().unwrap().to_string(), "cryptomb, pollDelay 10ms");
}

#[test]
fn istio_with_a_shorter_delay_and_an_injection_template() {
    let text = INGRESS.replace("pollDelay: 10ms", "pollDelay: 1ms").replace(
        "        podAnnotations:\n",
        "        podAnnotations:\n          inject.istio.io/templates: sidecar, cryptomb\n",
    );
    let found = resolve_texts(&[("operator.yaml", &text)]).unwrap();
    let ingress = &found.proxies[0];
    assert_eq!(ingress.effective.as_ref().unwrap().poll_delay, Duration::from_millis(1));
    assert_eq!(ingress.templates, ["sidecar", "cryptomb"]);
}
