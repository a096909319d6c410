//! The manifests of `deploy/istio`, without a cluster: they are YAML, and say the same names, sockets and ports.

use crate::{bootstrap, istio::resolve_texts};
use quadrille_config::yaml::{Limits, Node, Value, documents};

const OPERATOR: &str = include_str!("../../../../deploy/istio/operator.yaml");
const GATEWAY: &str = include_str!("../../../../deploy/istio/gateway.yaml");

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

/// Every text in the tree.
fn texts<'a>(node: &'a Node, all: &mut Vec<&'a str>) {
    match &node.value {
        Value::Null => {}
        Value::Scalar(text) => all.push(text),
        Value::Sequence(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Mapping(entries) => entries.iter().for_each(|entry| texts(&entry.value, all)),
    }
}

#[test]
fn names_sockets_and_ports_agree() {
    let operator =
        quadrille_config::yaml::read(OPERATOR, Limits::BY_HAND).expect("YAML").expect("a document");
    let template = text(&operator, &["spec", "values", "sidecarInjectorWebhook", "templates", "quadrille"]);
    let template =
        quadrille_config::yaml::read(template, Limits::BY_HAND).expect("YAML").expect("a template");
    let container = at(&template, &["spec", "containers", "1"]).expect("a container");
    let (map, deployment, service) = (of_kind("ConfigMap"), of_kind("Deployment"), of_kind("Service"));

    let found = bootstrap(text(&map, &["data", "bootstrap.yaml"]), "bootstrap.yaml").expect("a bootstrap");
    assert!(found.is_dynamic());
    assert_eq!(found.dynamic.ads.as_ref().map(|ads| ads.cluster.as_str()), Some("xds-grpc"));
    let admin = found.process.admin.as_ref().expect("an admin address").address.port().to_string();
    assert_eq!(admin, text(container, &["ports", "1", "containerPort"]));
    assert_eq!(
        text(container, &["readinessProbe", "httpGet", "port"]),
        text(container, &["ports", "1", "name"])
    );
    assert_eq!(
        text(&service, &["spec", "ports", "0", "targetPort"]),
        text(container, &["ports", "0", "containerPort"])
    );

    let mut mounted = Vec::new();
    texts(at(container, &["volumeMounts"]).expect("mounts"), &mut mounted);
    for cluster in ["xds-grpc", "sds-grpc"] {
        let socket = found.resources.clusters[cluster].endpoints[0].address.text();
        assert!(
            mounted.iter().any(|folder| socket.starts_with(&format!("{folder}/"))),
            "{socket} is not mounted"
        );
    }
    let volume = text(&template, &["spec", "volumes", "0", "configMap", "name"]);
    assert_eq!(volume, text(&map, &["metadata", "name"]));
    assert!(mounted.contains(&text(&template, &["spec", "volumes", "0", "name"])));
    assert_eq!(text(container, &["args", "2"]), "/etc/quadrille/bootstrap.yaml");

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
    let templates =
        text(&deployment, &["spec", "template", "metadata", "annotations", "inject.istio.io/templates"]);
    assert!(templates.split(", ").any(|name| name == "quadrille"));
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
    assert_eq!(gateway.templates, ["gateway", "quadrille"]);
    assert!(found.warnings.lines().is_empty());
}
