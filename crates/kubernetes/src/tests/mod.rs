//! Tests of translations, and of the table of annotations.

mod annotations;
mod gateway_api;
mod live;
mod reference;
mod services;

use crate::{Objects, Options, Translation, read, translate};

/// Returns an Ingress `shop/web` for `a.example` with these annotations, one a line and without their prefix, and the path `/`
/// of the Service `app`.
fn ingress(annotations: &str) -> String {
    let lines = annotations.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: String = lines.map(|line| format!("    nginx.ingress.kubernetes.io/{line}\n")).collect();
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: shop\n  annotations:\n    x: y\n{lines}\
         spec:\n  ingressClassName: nginx\n  rules:\n  - host: a.example\n    http:\n      paths:\n\
         \x20     - {{ path: /, pathType: Prefix, backend: {{ service: {{ name: app, port: {{ number: 80 }} }} }} }}\n"
    )
}

fn objects(text: &str) -> Objects {
    let mut objects = Objects::default();
    read(text, "objects.yaml", &mut objects).expect("YAML");
    objects
}

fn translated(text: &str) -> Translation {
    translate(&objects(text), &Options::default()).expect("a translation")
}
