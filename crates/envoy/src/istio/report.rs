//! A resolution as text and as JSON.

use super::{Proxy, Reason, Resolution, provider::Provider};
use quadrille_config::{model::Place, values::show_duration};
use serde_json::{Value, json};
use std::fmt;

impl Resolution {
    /// Returns the resolution as JSON.
    pub fn json(&self) -> Value {
        let mesh = self.mesh.as_ref();
        json!({
            "mesh": mesh.map(|(provider, place)| json!({ "provider": show(provider), "place": place.to_string() })),
            "proxies": self.proxies.iter().map(proxy).collect::<Vec<_>>(),
            "warnings": self.warnings.lines(),
        })
    }
}

fn proxy(proxy: &Proxy) -> Value {
    let (reason, place) = match &proxy.reason {
        Reason::Pod(place) => ("pod", Some(place)),
        Reason::Mesh(place) => ("mesh", Some(place)),
        Reason::NotNamed => ("none", None),
    };
    json!({
        "kind": proxy.kind,
        "name": proxy.name,
        "namespace": proxy.namespace,
        "injection_templates": proxy.templates,
        "provider": proxy.effective.as_ref().map(show),
        "reason": reason,
        "place": place.map(Place::to_string),
    })
}

fn show(provider: &Provider) -> Value {
    json!({
        "name": provider.kind.name(),
        "poll_delay": show_duration(provider.poll_delay),
        "delivered_poll_delay": show_duration(provider.delivered_delay()),
        "fallback": provider.fallback,
    })
}

/// Formats the resolution as text.
impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for proxy in &self.proxies {
            write!(f, "{} {}", proxy.kind, proxy.name)?;
            if let Some(namespace) = &proxy.namespace {
                write!(f, " in {namespace}")?;
            }
            match &proxy.effective {
                Some(provider) => writeln!(f, ": {provider}")?,
                None => writeln!(f, ": no provider")?,
            }
            match (&proxy.reason, &self.mesh) {
                (Reason::Pod(place), None) => writeln!(f, "    set by its own annotation: {place}")?,
                (Reason::Pod(place), Some((mesh, _))) => writeln!(
                    f,
                    "    set by its own annotation: {place}\n    replaces the mesh's default ({mesh})"
                )?,
                (Reason::Mesh(place), _) => {
                    writeln!(f, "    not set here; the mesh's default applies: {place}")?;
                }
                (Reason::NotNamed, _) => writeln!(f, "    not set here or in the mesh")?,
            }
            if !proxy.templates.is_empty() {
                writeln!(f, "    injection templates: {}", proxy.templates.join(", "))?;
            }
        }
        match &self.mesh {
            Some((provider, place)) => {
                writeln!(f, "every other proxy: {provider}\n    the mesh's default: {place}")
            }
            None => writeln!(f, "every other proxy: no provider\n    not set in the mesh"),
        }
    }
}
