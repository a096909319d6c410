//! A resolution as text and as JSON.

use super::{Proxy, Reason, Resolution, provider::Provider};
use quadrille_config::{model::Place, values::show_duration};
use serde_json::{Value, json};
use std::fmt;

impl Resolution {
    /// For programs.
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
        Reason::Nobody => ("none", None),
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

/// For people.
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
                (Reason::Pod(place), None) => writeln!(f, "    its own annotation says so: {place}")?,
                (Reason::Pod(place), Some((mesh, _))) => writeln!(
                    f,
                    "    its own annotation says so: {place}\n    it replaces the mesh's default ({mesh}) whole"
                )?,
                (Reason::Mesh(place), _) => {
                    writeln!(f, "    it says nothing itself, and the mesh's default holds: {place}")?;
                }
                (Reason::Nobody, _) => writeln!(f, "    neither it nor the mesh names one")?,
            }
            if !proxy.templates.is_empty() {
                writeln!(f, "    injection templates: {}", proxy.templates.join(", "))?;
            }
        }
        match &self.mesh {
            Some((provider, place)) => {
                writeln!(f, "every other proxy: {provider}\n    the mesh's default: {place}")
            }
            None => writeln!(f, "every other proxy: no provider\n    the mesh names none"),
        }
    }
}
