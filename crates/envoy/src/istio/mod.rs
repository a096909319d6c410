//! Resolution of Istio's private key providers.
//!
//! Istio configures it in three places: `meshConfig.defaultConfig` for the whole mesh, a gateway's `podAnnotations`,
//! and the annotation `proxy.istio.io/config` of a pod. A pod's value replaces that of the mesh completely: the
//! default is not merged.

mod manifest;
mod provider;
mod report;

pub use provider::{Provider, ProviderKind};

use crate::reader::reader;
use manifest::{Found, Workload};
use quadrille_config::{
    Diagnostic, Diagnostics, Warnings,
    model::{Origin, Place},
    read_text,
    yaml::Limits,
};
use std::path::Path;

/// Resolved providers of all proxies.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// Default of proxies without their own setting.
    pub mesh: Option<(Provider, Place)>,
    /// Gateways and workloads in the order of the manifests.
    pub proxies: Vec<Proxy>,
    /// Warnings.
    pub warnings: Warnings,
}

/// A gateway or another workload.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// `ingress gateway`, `egress gateway`, `Deployment`, `Pod`, ...
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, if set.
    pub namespace: Option<String>,
    /// Istio's injection templates, if the pod sets any.
    pub templates: Vec<String>,
    /// The provider in effect.
    pub effective: Option<Provider>,
    /// Reason for the effective provider.
    pub reason: Reason,
    /// Place of the proxy in the manifests.
    pub place: Place,
}

/// Reason why a provider is in effect.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The pod sets it here, replacing the mesh's default, if any.
    Pod(Place),
    /// The pod does not set it, and the mesh does so here.
    Mesh(Place),
    /// Neither sets it.
    NotNamed,
}

/// Reads manifests: IstioOperator, MeshConfig (alone, or in Istio's ConfigMap), and workloads with pods.
///
/// # Errors
/// If a file cannot be read, or its private key settings are invalid.
pub fn resolve(files: &[&Path]) -> Result<Resolution, Diagnostics> {
    let mut texts = Vec::new();
    for path in files {
        texts.push((path.display().to_string(), read_text(path)?));
    }
    let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    resolve_texts(&texts)
}

/// Like [`resolve`], for files that were read: their names and texts.
///
/// # Errors
/// If private key settings are invalid.
pub fn resolve_texts(files: &[(&str, &str)]) -> Result<Resolution, Diagnostics> {
    let mut found = Found::default();
    let mut warnings = Warnings::default();
    for (name, text) in files {
        let origin = Origin::file(name);
        let documents = quadrille_config::yaml::documents(text, Limits::BY_HAND)
            .map_err(|error| Diagnostic::syntax(&origin, error))?;
        for document in &documents {
            let reader = reader(origin.clone());
            let read = manifest::read(&reader.root(document, ""), &mut found);
            let ((), more) = reader.finish(read)?;
            warnings.extend(more);
        }
    }
    let mesh = found.mesh;
    let proxies = found.workloads.into_iter().map(|workload| proxy(workload, mesh.as_ref())).collect();
    Ok(Resolution { mesh, proxies, warnings })
}

fn proxy(workload: Workload, mesh: Option<&(Provider, Place)>) -> Proxy {
    let (effective, reason) = match (workload.provider, mesh) {
        (Some((provider, place)), _) => (Some(provider), Reason::Pod(place)),
        (None, Some((provider, place))) => (Some(provider.clone()), Reason::Mesh(place.clone())),
        (None, None) => (None, Reason::NotNamed),
    };
    let Workload { kind, name, namespace, templates, place, .. } = workload;
    Proxy { kind, name, namespace, templates, effective, reason, place }
}
