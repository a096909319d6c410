//! Hosts with their locations, as Ingress objects claim them: the oldest object first, then by name.

use crate::{
    annotation::{
        Annotations,
        client_auth::{self, ClientAuth},
        redirect,
        text::list,
    },
    hosts,
    object::{Backend, Ingress, PathType},
    world::World,
};
use quadrille_draft::yaml::Map;

/// An Ingress that is translated, with its annotations.
#[derive(Debug)]
pub(crate) struct Source<'w, 'o> {
    pub(crate) ingress: &'o Ingress,
    pub(crate) annotations: Annotations<'w, 'o>,
    pub(crate) is_canary: bool,
}

/// A host with its locations.
#[derive(Debug, Default)]
pub(crate) struct Site<'o> {
    /// Empty for hosts that no Ingress names.
    pub(crate) host: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) locations: Vec<Location<'o>>,
    /// The backend of paths that no location matches, with the number of its source.
    pub(crate) fallback: Option<(usize, &'o Backend)>,
    /// Other names that are redirected to the host.
    pub(crate) redirected: Vec<(String, Map)>,
    /// The Secret of the host's certificate, and the source that names it.
    pub(crate) certificate: Option<(usize, String, String)>,
    pub(crate) has_tls: bool,
    pub(crate) client_auth: Option<ClientAuth>,
    /// The value of `ssl-ciphers`, and its source.
    pub(crate) ciphers: Option<(usize, &'o str)>,
    /// The source and the backend of connections that are not decrypted.
    pub(crate) passthrough: Option<(usize, &'o Backend)>,
}

/// A path with its backend.
#[derive(Debug)]
pub(crate) struct Location<'o> {
    pub(crate) source: usize,
    pub(crate) path: &'o str,
    pub(crate) kind: PathType,
    pub(crate) backend: &'o Backend,
    pub(crate) canary: Option<(usize, &'o Backend)>,
}

/// Returns the hosts of all sources, which are in the order of precedence.
pub(crate) fn sites<'o>(sources: &[Source<'_, 'o>], world: &World<'o>) -> Vec<Site<'o>> {
    let mut sites: Vec<Site<'o>> = Vec::new();
    for (number, source) in sources.iter().enumerate().filter(|(_, source)| !source.is_canary) {
        claim(&mut sites, number, source, sources, world);
    }
    for (number, source) in sources.iter().enumerate().filter(|(_, source)| source.is_canary) {
        add_canary(&mut sites, number, source, world);
    }
    let hosts: Vec<String> = sites.iter().map(|site| site.host.clone()).collect();
    let mut taken = hosts.clone();
    for (number, source) in sources.iter().enumerate().filter(|(_, source)| !source.is_canary) {
        for host in hosts.iter().filter(|host| names(source.ingress, host)) {
            if let Some(site) = sites.iter_mut().find(|site| site.host == *host) {
                of_host(site, number, source, &mut taken);
            }
        }
    }
    sites
}

fn names(ingress: &Ingress, host: &str) -> bool {
    ingress.rules.iter().any(|rule| rule.host == host)
}

fn claim<'o>(
    sites: &mut Vec<Site<'o>>,
    number: usize,
    source: &Source<'_, 'o>,
    sources: &[Source<'_, 'o>],
    world: &World<'o>,
) {
    let ingress = source.ingress;
    for rule in &ingress.rules {
        if let Err(problem) = hosts::usable(&rule.host) {
            world.refuse(&ingress.meta, &format!("host {}", rule.host), problem);
            continue;
        }
        let site = site(sites, &rule.host);
        if let (None, Some(backend)) = (&site.fallback, &ingress.default_backend) {
            site.fallback = Some((number, backend));
        }
        for path in &rule.paths {
            let same = |one: &&Location<'_>| {
                one.path == path.path
                    && (one.kind == path.kind || path.path == "/" && path.kind != PathType::Exact)
            };
            if let Some(first) = site.locations.iter().find(same) {
                let owner = &sources[first.source].ingress.meta;
                let text = format!(
                    "{owner} has this path already, and precedes it by age or name: choose another path, or remove one"
                );
                world.refuse(&ingress.meta, &format!("path {}{}", rule.host, path.path), text);
                continue;
            }
            site.locations.push(Location {
                source: number,
                path: &path.path,
                kind: path.kind,
                backend: &path.backend,
                canary: None,
            });
        }
    }
    if let Some(backend) = &ingress.default_backend {
        let site = site(sites, "");
        site.fallback.get_or_insert((number, backend));
    }
}

fn add_canary<'o>(sites: &mut [Site<'o>], number: usize, source: &Source<'_, 'o>, world: &World<'o>) {
    for rule in &source.ingress.rules {
        for path in &rule.paths {
            let site = sites.iter_mut().find(|site| site.host == rule.host);
            let location = site.and_then(|site| {
                site.locations.iter_mut().find(|one| one.path == path.path && one.kind == path.kind)
            });
            let setting = format!("path {}{}", rule.host, path.path);
            match location {
                None => world.refuse(
                    &source.ingress.meta,
                    &setting,
                    "no Ingress without `canary` has this path: the canary receives nothing",
                ),
                Some(location) if location.canary.is_some() => world.refuse(
                    &source.ingress.meta,
                    &setting,
                    "another canary of this path precedes it: a path has one canary",
                ),
                Some(location) => location.canary = Some((number, &path.backend)),
            }
        }
    }
}

/// Adds the settings of an Ingress that concern whole hosts; the first Ingress that has one decides.
fn of_host<'o>(site: &mut Site<'o>, number: usize, source: &Source<'_, 'o>, taken: &mut Vec<String>) {
    let annotations = &source.annotations;
    if let Some(secret) = secret_of(source.ingress, &site.host) {
        site.has_tls = true;
        if site.certificate.is_none() && !secret.is_empty() {
            site.certificate = Some((number, source.ingress.meta.namespace.clone(), secret));
        }
    }
    for alias in annotations.value("server-alias").map(list).into_iter().flatten() {
        let alias = alias.to_ascii_lowercase();
        if alias.starts_with('~') || hosts::usable(&alias).is_err() {
            annotations.refuse("server-alias", format!("`{alias}` is not a host: list the names one by one"));
        } else if taken.contains(&alias) {
            annotations
                .refuse("server-alias", format!("another Ingress has the host `{alias}`: it is left out"));
        } else {
            taken.push(alias.clone());
            site.aliases.push(alias);
        }
    }
    if let Some((other, redirect)) = redirect::www(annotations, &site.host) {
        if taken.contains(&other) {
            annotations.refuse(
                "from-to-www-redirect",
                format!("another Ingress has the host `{other}`: it is not redirected"),
            );
        } else {
            taken.push(other.clone());
            site.redirected.push((other, redirect));
        }
    }
    if let Some(auth) = client_auth::read(annotations) {
        match &site.client_auth {
            Some(first) if *first != auth => {
                let problem = "another Ingress of the host has other client certificates, which apply to the whole host";
                annotations.refuse("auth-tls-secret", format!("{problem}; it responds with 503 meanwhile"));
                site.client_auth = Some(ClientAuth { closed: Some(problem.to_owned()), ..first.clone() });
            }
            Some(_) => {}
            None => site.client_auth = Some(auth),
        }
    }
    if let (None, Some(list)) = (site.ciphers, annotations.value("ssl-ciphers")) {
        site.ciphers = Some((number, list));
    }
    if annotations.flag("ssl-passthrough") == Some(true) && site.passthrough.is_none() {
        let location = site.locations.iter().find(|one| one.source == number && one.path == "/");
        match location {
            Some(location) if !site.host.is_empty() => site.passthrough = Some((number, location.backend)),
            _ => annotations.refuse("ssl-passthrough", "the Ingress needs a host with the path `/`"),
        }
    }
}

/// Returns the Secret of a host's certificate, empty for the default one; `None` without TLS.
fn secret_of(ingress: &Ingress, host: &str) -> Option<String> {
    let covers = |name: &String| {
        name == host
            || name
                .strip_prefix("*.")
                .is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest == parent))
    };
    let exact = ingress.tls.iter().find(|tls| tls.hosts.iter().any(|name| name == host));
    let found = exact.or_else(|| ingress.tls.iter().find(|tls| tls.hosts.iter().any(covers)));
    let found =
        found.or_else(|| ingress.tls.iter().find(|tls| tls.hosts.is_empty() && !tls.secret.is_empty()));
    found.map(|tls| tls.secret.clone())
}

fn site<'s, 'o>(sites: &'s mut Vec<Site<'o>>, host: &str) -> &'s mut Site<'o> {
    let at = match sites.iter().position(|site| site.host == host) {
        Some(at) => at,
        None => {
            sites.push(Site { host: host.to_owned(), ..Site::default() });
            sites.len() - 1
        }
    };
    &mut sites[at]
}
