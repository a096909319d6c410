//! The manifests of `deploy/istio`, without a cluster: they are valid YAML with consistent names and paths.

use crate::istio::resolve_texts;
use quadrille_config::yaml::{Limits, Node, Value, documents};

const OPERATOR: &str = include_str!("../../../../deploy/istio/operator.yaml");
const GATEWAY: &str = include_str!("../../../../deploy/istio/gateway.yaml");
const DOCKERFILE: &str = include_str!("../../../../deploy/istio/Dockerfile");

fn of_kind(kind: &str) -> Node {
    let all = documents(GATEWAY, Limits::BY_HAND).expect("YAML");
    let mut found =
        all.into_iter().filter(|document| at(document, &["kind"]).and_then(Node::text) == Some(kind));
    found.next().unwrap_or_else(|| panic!("no {kind}"))
}

fn at<'a>(node: &'a Node, keys: &[&str]) -> Option<&'a Node> {
    keys.iter().try_fold(node, |node, key| match (&node.value, key.parse::<usize>()) {
        (Value::Sequence(items), Ok(index)) => items.get(index),
        _ => node.get(key),
    })
}

fn text<'a>(node: &'a Node, keys: &[&str]) -> &'a str {
    at(node, keys).and_then(Node::text).unwrap_or_else(|| panic!("no {keys:?}"))
}

#[test]
fn names_and_paths_agree() {
    let (deployment, service) = (of_kind("Deployment"), of_kind("Service"));
    let template = ["spec", "template", "metadata", "annotations"];
    let annotation = |name: &'static str| text(&deployment, &[&template[..], &[name]].concat());
    let config = quadrille_config::yaml::read(annotation("proxy.istio.io/config"), Limits::BY_HAND);
    let config = config.expect("YAML").expect("a document");
    let binary = text(&config, &["binaryPath"]);
    assert!(DOCKERFILE.lines().any(|line| line == format!("COPY bin/quadrille {binary}")), "{binary}");
    let image = annotation("sidecar.istio.io/proxyImage");
    assert!(image.contains('/'), "Istio's template would interpret it as the name of its own image");
    let (repository, _) = image.split_once(':').expect("a tag");
    assert!(DOCKERFILE.contains(&format!("--tag {repository} ")), "{repository}");
    assert_eq!(annotation("inject.istio.io/templates"), "gateway", "the stock template alone");

    let pod = at(&deployment, &["spec", "template", "metadata", "labels"]).expect("labels");
    for selector in
        [at(&service, &["spec", "selector"]), at(&deployment, &["spec", "selector", "matchLabels"])]
    {
        let Some(Value::Mapping(wanted)) = selector.map(|selector| &selector.value) else {
            panic!("no selector")
        };
        for label in wanted {
            assert_eq!(label.value.text(), pod.get(&label.key).and_then(Node::text), "{}", label.key);
        }
    }
    let account = of_kind("ServiceAccount");
    assert_eq!(
        text(&deployment, &["spec", "template", "spec", "serviceAccountName"]),
        text(&account, &["metadata", "name"])
    );
}

#[test]
fn the_gateways_own_provider_holds() {
    let found = resolve_texts(&[("operator.yaml", OPERATOR), ("gateway.yaml", GATEWAY)]).expect("manifests");
    let [gateway] = found.proxies.as_slice() else { panic!("{found}") };
    assert_eq!(gateway.effective.as_ref().expect("a provider").to_string(), "cryptomb, pollDelay 1ms");
    assert_eq!(gateway.templates, ["gateway"]);
    assert!(found.warnings.lines().is_empty());
}
