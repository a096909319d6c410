//! Gateway API objects for what Ingress objects say, with comments for the rest.
//!
//! Each namespace gets a Gateway with a listener for HTTP and one for each host with TLS; each Ingress an HTTPRoute for each
//! of its hosts. A rule that something guards which Gateway API cannot express has no backend: it responds with an error.

mod rule;

use crate::{
    annotation::Annotations,
    object::Objects,
    options::Options,
    site::{Site, Source},
    translation::sources,
    world::World,
};
use quadrille_draft::yaml::{Map, Value, document};

/// Returns Gateway and HTTPRoute objects in YAML.
pub fn gateway_api(objects: &Objects, options: &Options) -> String {
    let world = World::new(objects, options);
    let sources = sources(&world);
    let sites = crate::site::sites(&sources, &world);
    let mut documents = Vec::new();
    let mut namespaces: Vec<&str> = sources.iter().map(|one| one.ingress.meta.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    for namespace in namespaces {
        documents.push(gateway(namespace, &sites, &sources));
    }
    for site in &sites {
        for (number, source) in sources.iter().enumerate() {
            if site.locations.iter().any(|one| one.source == number) {
                documents.extend(routes(site, number, source, &sources));
            }
        }
    }
    documents.iter().map(document).collect::<Vec<_>>().join("---\n")
}

/// Returns the beginning of an object.
fn object(version: &str, kind: &str, namespace: &str, name: &str, spec: Map) -> Map {
    let metadata = Map::of("name", name).with("namespace", namespace);
    Map::of("apiVersion", version).with("kind", kind).with("metadata", metadata).with("spec", spec)
}

const VERSION: &str = "gateway.networking.k8s.io/v1";
const GATEWAY: &str = "ingress";

fn gateway(namespace: &str, sites: &[Site<'_>], sources: &[Source<'_, '_>]) -> Map {
    let mut listeners = vec![Map::of("name", "http").with("port", "80").with("protocol", "HTTP")];
    for site in sites {
        let Some((source, of, secret)) = &site.certificate else { continue };
        if of != namespace || site.host.is_empty() {
            continue;
        }
        let reference = Map::of("name", secret);
        let mut listener = Map::of("name", section(&site.host))
            .with("hostname", &site.host)
            .with("port", "443")
            .with("protocol", "HTTPS")
            .with("tls", Map::of("certificateRefs", vec![reference]));
        if site.client_auth.is_some() {
            listener.comment(format!(
                "{}: client certificates are set by `spec.tls.frontend` of a Gateway, for all its listeners",
                sources[*source].ingress.meta
            ));
        }
        listeners.push(listener);
    }
    let spec = Map::of("gatewayClassName", "quadrille").with("listeners", listeners);
    let mut gateway = object(VERSION, "Gateway", namespace, GATEWAY, spec);
    gateway.comment("Written by `quadrille ingress report --to-gateway-api`: read the comments before use.");
    gateway
}

/// Returns the name of a host's listener.
fn section(host: &str) -> String {
    format!("https-{}", host.replace("*.", "wildcard-").replace('.', "-"))
}

/// Returns the HTTPRoutes of an Ingress for a host: one for HTTPS, or for both, and one that redirects to HTTPS.
fn routes(site: &Site<'_>, number: usize, source: &Source<'_, '_>, sources: &[Source<'_, '_>]) -> Vec<Map> {
    let annotations = &source.annotations;
    let namespace = &source.ingress.meta.namespace;
    let host = site.host.replace("*.", "wildcard-").replace('.', "-");
    let name = if host.is_empty() {
        source.ingress.meta.name.clone()
    } else {
        format!("{}-{host}", source.ingress.meta.name)
    };
    let redirects = crate::annotation::redirect::to_https(annotations, site.has_tls).is_some();
    let mut rules = Vec::new();
    let guards = rule::guards(annotations, site);
    for location in site.locations.iter().filter(|one| one.source == number) {
        rules.extend(rule::rules(site, location, sources, &guards));
    }
    let parent = |section: Option<String>| {
        let mut parent = Map::of("name", GATEWAY);
        if let Some(section) = section {
            parent.set("sectionName", section);
        }
        vec![parent]
    };
    let hostnames: Vec<Value> = std::iter::once(&site.host)
        .chain(&site.aliases)
        .filter(|host| !host.is_empty())
        .map(Value::from)
        .collect();
    let spec = |parents: Vec<Map>, rules: Vec<Map>| {
        let mut spec = Map::of("parentRefs", parents);
        if !hostnames.is_empty() {
            spec.set("hostnames", Value::List(hostnames.clone()));
        }
        spec.with("rules", rules)
    };
    let has_listener = site.certificate.as_ref().is_some_and(|(_, of, _)| of == namespace);
    let https = (redirects && has_listener).then(|| section(&site.host));
    let mut route = object(VERSION, "HTTPRoute", namespace, &name, spec(parent(https), rules));
    remarks(annotations, &mut route);
    let mut made = vec![route];
    if redirects {
        let filter = Map::of("type", "RequestRedirect")
            .with("requestRedirect", Map::of("scheme", "https").with("statusCode", "301"));
        let rules = vec![Map::of("filters", vec![filter])];
        let spec = spec(parent(Some("http".to_owned())), rules);
        made.push(object(VERSION, "HTTPRoute", namespace, &format!("{name}-to-https"), spec));
    }
    made
}

/// Adds a comment for each annotation that is not expressed.
fn remarks(annotations: &Annotations<'_, '_>, route: &mut Map) {
    for entry in crate::annotation::table::ALL {
        if annotations.value(entry.name).is_some() && !rule::EXPRESSED.contains(&entry.name) {
            route.comment(format!(
                "{}: Gateway API has no field for it: use a policy of the implementation",
                entry.name
            ));
        }
    }
}
