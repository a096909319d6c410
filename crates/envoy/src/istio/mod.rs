//! Which private-key provider Istio gives to whom.
//!
//! Istio has it in three places: `meshConfig.defaultConfig` for the whole mesh, a gateway's `podAnnotations`, and the
//! annotation `proxy.istio.io/config` of one pod. A pod's value replaces the mesh's whole: nothing of the default is
//! left.

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

/// Who gets which provider.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// What holds for every proxy that says nothing itself.
    pub mesh: Option<(Provider, Place)>,
    /// The gateways and workloads of the manifests, in their order.
    pub proxies: Vec<Proxy>,
    /// What is worth knowing.
    pub warnings: Warnings,
}

/// A gateway, or a workload.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// `ingress gateway`, `egress gateway`, `Deployment`, `Pod`, ...
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace, if it is said.
    pub namespace: Option<String>,
    /// Istio's injection templates, if the pod names some.
    pub templates: Vec<String>,
    /// The provider in effect.
    pub effective: Option<Provider>,
    /// Why it is this one.
    pub reason: Reason,
    /// Where the proxy is written.
    pub place: Place,
}

/// Why a provider is in effect.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The pod says so, here; and the mesh's default, if there is one, is replaced whole.
    Pod(Place),
    /// The pod says nothing, and the mesh says so, here.
    Mesh(Place),
    /// Nobody says anything.
    Nobody,
}

/// Reads manifests: IstioOperator, MeshConfig (alone, or in Istio's ConfigMap), and whatever has pods.
///
/// # Errors
/// If a file cannot be read, or something about private keys in it is wrong.
pub fn resolve(files: &[&Path]) -> Result<Resolution, Diagnostics> {
    let mut texts = Vec::new();
    for path in files {
        texts.push((path.display().to_string(), read_text(path)?));
    }
    let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    resolve_texts(&texts)
}

/// As [`resolve`], of files that were read: their names and texts.
///
/// # Errors
/// If something about private keys is wrong.
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
        (None, None) => (None, Reason::Nobody),
    };
    let Workload { kind, name, namespace, templates, place, .. } = workload;
    Proxy { kind, name, namespace, templates, effective, reason, place }
}
