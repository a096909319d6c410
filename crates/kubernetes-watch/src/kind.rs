//! Kinds of objects that are watched.

use kube::core::{ApiResource, GroupVersionKind};

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    IngressClass,
    Ingress,
    Service,
    EndpointSlice,
    ConfigMap,
    Secret,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::IngressClass,
        Self::Ingress,
        Self::Service,
        Self::EndpointSlice,
        Self::ConfigMap,
        Self::Secret,
    ];

    /// Returns the name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IngressClass => "IngressClass",
            Self::Ingress => "Ingress",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the kind with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether objects have a namespace.
    pub(crate) fn is_namespaced(self) -> bool {
        self != Self::IngressClass
    }

    /// Returns the resource of the API.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, plural) = match self {
            Self::IngressClass => ("networking.k8s.io", "v1", "ingressclasses"),
            Self::Ingress => ("networking.k8s.io", "v1", "ingresses"),
            Self::Service => ("", "v1", "services"),
            Self::EndpointSlice => ("discovery.k8s.io", "v1", "endpointslices"),
            Self::ConfigMap => ("", "v1", "configmaps"),
            Self::Secret => ("", "v1", "secrets"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, self.name()), plural)
    }

    /// Returns the selector of objects that can concern the gateway: large ones of other programs are left out.
    pub(crate) fn fields(self) -> Option<&'static str> {
        match self {
            Self::ConfigMap => Some("metadata.name!=kube-root-ca.crt"),
            Self::Secret => Some(
                "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token,type!=kubernetes.io/dockercfg,\
                 type!=kubernetes.io/dockerconfigjson,type!=bootstrap.kubernetes.io/token",
            ),
            _ => None,
        }
    }
}
