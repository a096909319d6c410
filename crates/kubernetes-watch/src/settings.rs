//! Settings of a watch.

use quadrille_kubernetes::Options;
use std::{fmt, path::PathBuf, str::FromStr};

/// Settings of a watch.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of the translation.
    pub translation: Options,
    /// A file with the address of the API server and credentials; without it, those of the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Namespaces whose objects are watched; empty for all.
    pub namespaces: Vec<String>,
    /// Addresses to write to the status of Ingress objects.
    pub addresses: Vec<String>,
    /// A Service whose addresses are written to the status of Ingress objects.
    pub publish_service: Option<NamespacedName>,
    /// The Lease whose holder writes; without it, `quadrille` in the namespace of the pod.
    pub lease: Option<NamespacedName>,
    /// Name of this process in the Lease.
    pub identity: String,
}

/// A name with its namespace, `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl FromStr for NamespacedName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME".to_owned()),
        }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
