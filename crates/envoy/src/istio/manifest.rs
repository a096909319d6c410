//! Kubernetes manifests: the private key providers set for the mesh and for pods.

use super::provider::{Provider, of_proxy_config};
use crate::reader::{Field, reader};
use quadrille_config::{Problem, model::Place, yaml::Limits};

/// Contents of the manifests.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) mesh: Option<(Provider, Place)>,
    pub(super) workloads: Vec<Workload>,
}

/// A gateway, or another workload with pods.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) templates: Vec<String>,
    pub(super) provider: Option<(Provider, Place)>,
    pub(super) place: Place,
}

/// Annotation with a pod's own `ProxyConfig`, as text.
const PROXY_CONFIG: &str = "proxy.istio.io/config";
const TEMPLATES: &str = "inject.istio.io/templates";

/// Reads one document.
pub(super) fn read(field: &Field<'_>, found: &mut Found) -> Option<()> {
    let kind = text_at(field, &["kind"]);
    match kind.as_deref() {
        Some("IstioOperator") => operator(field, found),
        Some("List") => {
            let items = at(field, &["items"]).map(|items| items.items()).unwrap_or_default();
            items.iter().map(|item| read(item, found)).collect::<Vec<_>>().into_iter().collect()
        }
        Some("ConfigMap") => match at(field, &["data", "mesh"]) {
            Some(mesh) => embedded(&mesh, |document| mesh_config(document, found)),
            None => Some(()),
        },
        Some("CronJob") => pods(field, &["spec", "jobTemplate", "spec", "template"], found),
        Some("Pod") => pods(field, &[], found),
        Some(_) if at(field, &["spec", "template", "metadata"]).is_some() => {
            pods(field, &["spec", "template"], found)
        }
        Some(_) => Some(()),
        None => mesh_config(field, found),
    }
}

fn operator(field: &Field<'_>, found: &mut Found) -> Option<()> {
    if let Some(mesh) = at(field, &["spec", "meshConfig"]) {
        mesh_config(&mesh, found)?;
    }
    let namespace = text_at(field, &["metadata", "namespace"]);
    for (list, kind) in [("ingressGateways", "ingress gateway"), ("egressGateways", "egress gateway")] {
        let Some(gateways) = at(field, &["spec", "components", list]) else { continue };
        for gateway in gateways.items() {
            // A disabled gateway has no proxy.
            if text_at(&gateway, &["enabled"]).as_deref() == Some("false") {
                continue;
            }
            let annotations = at(&gateway, &["k8s", "podAnnotations"]);
            let own = text_at(&gateway, &["namespace"]).or_else(|| namespace.clone());
            let name = text_at(&gateway, &["name"]);
            add(kind, name, own, &gateway, annotations.as_ref(), found)?;
        }
    }
    Some(())
}

/// Reads `MeshConfig`, with the default of all proxies.
fn mesh_config(field: &Field<'_>, found: &mut Found) -> Option<()> {
    let Some(default) = at(field, &["defaultConfig"]).or_else(|| at(field, &["default_config"])) else {
        return Some(());
    };
    if let Some((provider, field)) = of_proxy_config(&default)? {
        if let Some((_, first)) = &found.mesh {
            return field.fail(Problem::new("a second mesh default", format!("the first is {first}")));
        }
        found.mesh = Some((provider, field.place()));
    }
    Some(())
}

fn pods(field: &Field<'_>, template: &[&str], found: &mut Found) -> Option<()> {
    let kind = text_at(field, &["kind"]).unwrap_or_default();
    let name = text_at(field, &["metadata", "name"]);
    let namespace = text_at(field, &["metadata", "namespace"]);
    let annotations = at(field, template).and_then(|pod| at(&pod, &["metadata", "annotations"]));
    add(&kind, name, namespace, field, annotations.as_ref(), found)
}

fn add(
    kind: &str,
    name: Option<String>,
    namespace: Option<String>,
    field: &Field<'_>,
    annotations: Option<&Field<'_>>,
    found: &mut Found,
) -> Option<()> {
    let mut provider = None;
    if let Some(text) = annotations.and_then(|annotations| annotations.entry(PROXY_CONFIG)) {
        let place = text.place();
        embedded(&text, |document| {
            provider = of_proxy_config(document)?.map(|(provider, _)| (provider, place.clone()));
            Some(())
        })?;
    }
    let templates =
        annotations.and_then(|annotations| text_at(annotations, &[TEMPLATES])).unwrap_or_default();
    let templates = templates.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    found.workloads.push(Workload {
        kind: kind.to_owned(),
        name: name.unwrap_or_else(|| "(no name)".to_owned()),
        namespace,
        templates: templates.collect(),
        provider,
        place: field.place(),
    });
    Some(())
}

/// Reads YAML embedded in a YAML text; its errors are reported at the place of the text.
fn embedded(field: &Field<'_>, read: impl FnOnce(&Field<'_>) -> Option<()>) -> Option<()> {
    let document = match quadrille_config::yaml::read(field.text()?, Limits::BY_HAND) {
        Ok(Some(document)) => document,
        Ok(None) => return Some(()),
        Err(error) => {
            let message = format!("line {} of the text: {}", error.position.line, error.problem.message);
            return field.fail(Problem { message, ..error.problem });
        }
    };
    let reader = reader(field.origin().clone());
    let done = read(&reader.root(&document, field.path()));
    match reader.finish(done) {
        Ok(((), warnings)) => {
            field.extend_warnings(warnings);
            Some(())
        }
        Err(found) => field.fail_inside(found),
    }
}

/// Returns the field at the end of these keys.
fn at<'a>(field: &Field<'a>, keys: &[&str]) -> Option<Field<'a>> {
    keys.iter().try_fold(field.clone(), |field, key| field.entry(key))
}

fn text_at(field: &Field<'_>, keys: &[&str]) -> Option<String> {
    at(field, keys)?.node().text().map(str::to_owned)
}
