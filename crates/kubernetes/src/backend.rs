//! Upstreams of Services: by their DNS name, or by EndpointSlices.

use crate::{
    annotation::Annotations,
    object::{Backend, EndpointSlice, Service},
    world::World,
};
use quadrille_draft::yaml::Map;
use std::net::IpAddr;

/// Servers of a Service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    At(Vec<String>),
    /// Has no ready endpoints.
    NotReady,
    /// The Service, or its port, does not exist.
    Unknown(String),
}

/// Returns the name of the upstream of a backend, with these keys, or the reason for which it has no servers.
///
/// # Errors
/// If the Service has no servers, and `default-backend` neither.
pub(crate) fn upstream(
    annotations: &Annotations<'_, '_>,
    backend: &Backend,
    keys: &Map,
) -> Result<String, String> {
    let world = annotations.world;
    let namespace = &annotations.meta.namespace;
    let by_service = annotations.flag("service-upstream") == Some(true);
    let found = servers(world, namespace, backend, by_service);
    let problem = match found {
        Servers::At(servers) => return Ok(add(world, namespace, backend, servers, keys)),
        Servers::NotReady => format!("the Service {namespace}/{} has no ready endpoints", backend.service),
        Servers::Unknown(problem) => {
            world.refuse(annotations.meta, &format!("backend {}", backend.service), problem.clone());
            problem
        }
    };
    let Some(service) = annotations.value("default-backend") else { return Err(problem) };
    let default = Backend { service: service.to_owned(), port: String::new() };
    match servers(world, namespace, &default, by_service) {
        Servers::At(servers) => Ok(add(world, namespace, &default, servers, &Map::new())),
        Servers::NotReady => Err(problem),
        Servers::Unknown(other) => {
            annotations.refuse("default-backend", other);
            Err(problem)
        }
    }
}

fn add(world: &World<'_>, namespace: &str, backend: &Backend, servers: Vec<String>, keys: &Map) -> String {
    let mut upstream = Map::of("servers", servers);
    upstream.extend(keys.clone());
    let port = if backend.port.is_empty() { String::new() } else { format!("-{}", backend.port) };
    world.draft.borrow_mut().upstream(&format!("{namespace}-{}{port}", backend.service), upstream)
}

/// Returns the servers of a backend.
pub(crate) fn servers(world: &World<'_>, namespace: &str, backend: &Backend, by_service: bool) -> Servers {
    let name = &backend.service;
    let objects = world.objects;
    let service = objects.service(namespace, name);
    if service.is_none() && (objects.is_complete || !objects.services.is_empty()) {
        return Servers::Unknown(format!(
            "the Service {namespace}/{name} does not exist; its paths respond with 503"
        ));
    }
    let port = match (service, backend.port.parse::<u16>()) {
        (Some(service), _) => match service.port(&backend.port) {
            Some(port) => port.number,
            None if service.external_name.is_some() && backend.port.parse::<u16>().is_ok() => {
                backend.port.parse().unwrap_or_default()
            }
            None => {
                return Servers::Unknown(format!(
                    "the Service {namespace}/{name} has no port `{}`; its paths respond with 503",
                    backend.port
                ));
            }
        },
        (None, Ok(port)) => port,
        (None, Err(_)) => {
            return Servers::Unknown(format!(
                "the port `{}` of {namespace}/{name} is a name: add the Service to the input; its paths respond with 503",
                backend.port
            ));
        }
    };
    if let Some(host) = service.and_then(|service| service.external_name.as_deref()) {
        return Servers::At(vec![format!("{host}:{port}")]);
    }
    if (objects.is_complete || !objects.endpoint_slices.is_empty()) && !by_service {
        return endpoints(world, namespace, name, service, backend);
    }
    // The names of headless Services are those of their pods.
    let port = match service {
        Some(service) if service.is_headless => {
            service.port(&backend.port).and_then(|port| port.target).unwrap_or(port)
        }
        _ => port,
    };
    Servers::At(vec![format!("{name}.{namespace}.svc:{port}")])
}

fn endpoints(
    world: &World<'_>,
    namespace: &str,
    name: &str,
    service: Option<&Service>,
    backend: &Backend,
) -> Servers {
    let slices = world.objects.endpoint_slices.iter();
    let slices: Vec<&EndpointSlice> =
        slices.filter(|slice| slice.meta.namespace == namespace && slice.service == name).collect();
    let port_name = service.and_then(|service| service.port(&backend.port)).map(|port| port.name.as_str());
    let servers = |addresses: fn(&EndpointSlice) -> &[String]| {
        let mut servers = Vec::new();
        for slice in &slices {
            let port = match port_name {
                Some(name) => slice.ports.iter().find(|(known, _)| known == name),
                None => slice.ports.first().filter(|_| slice.ports.len() == 1),
            };
            let Some((_, port)) = port else { continue };
            for address in addresses(slice) {
                let server = match address.parse() {
                    Ok(IpAddr::V6(_)) => format!("[{address}]:{port}"),
                    _ => format!("{address}:{port}"),
                };
                if !servers.contains(&server) {
                    servers.push(server);
                }
            }
        }
        servers
    };
    // While all endpoints terminate, those that still serve are better than none, as for kube-proxy.
    let ready = servers(|slice| &slice.addresses);
    let servers = if ready.is_empty() { servers(|slice| &slice.terminating) } else { ready };
    if servers.is_empty() { Servers::NotReady } else { Servers::At(servers) }
}
