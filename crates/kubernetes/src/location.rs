//! Routes of a location: its backend, its guards and its changes.

use crate::{
    annotation::{
        Annotations, Texts, access, affinity, basic_auth, canary, cors, errors, external_auth, headers,
        limits, mirror, proxy, proxy_tls, redirect, retry, rewrite, snippet,
    },
    backend,
    object::{Backend, PathType},
    site::{Location, Site, Source},
};
use quadrille_draft::{
    draft::{Action, Path, Route},
    variables::Context,
    yaml::{Map, Value},
};

/// Prefix of paths that are never redirected to HTTPS: those by which certificates are ordered.
const CHALLENGES: &str = "/.well-known/acme-challenge";

/// Routes of a location, over HTTPS and over HTTP.
#[derive(Debug)]
pub(crate) struct Routes {
    /// Those with conditions first.
    pub(crate) secure: Vec<Route>,
    pub(crate) plain: Vec<Route>,
}

/// Returns the routes of a location whose paths have this condition.
pub(crate) fn routes(
    site: &Site<'_>,
    location: &Location<'_>,
    path: Path,
    sources: &[Source<'_, '_>],
) -> Routes {
    let annotations = &sources[location.source].annotations;
    let texts = texts(annotations, location.backend, &path);
    let mut route = Route::new(path, Action::status(503));
    if redirect::whole(annotations, &texts, &mut route) {
        return Routes { secure: vec![route.clone()], plain: vec![route] };
    }
    let mut keys = Map::new();
    let closed =
        proxy::upstream(annotations, &mut keys).and_then(|()| proxy_tls::apply(annotations, &mut keys));
    affinity::apply(annotations, &texts, &mut route, &mut keys);
    if retry::is_off(annotations) {
        keys.set("retries", "0");
    }
    let main = closed.and_then(|()| backend::upstream(annotations, location.backend, &keys));
    match &main {
        Ok(name) => route.action = Action::Upstream(name.clone()),
        Err(reason) => route.comment(format!("NOT SERVED: {reason}")),
    }
    rewrite::apply(annotations, &texts, location.path, &mut route);
    headers::apply(annotations, &texts, &mut route);
    retry::apply(annotations, &mut route);
    mirror::apply(annotations, &texts, &mut route);
    cors::apply(annotations, &mut route);
    proxy::route(annotations, &mut route);
    errors::apply(annotations, &mut route);
    guard(annotations, &texts, (site, sources), &mut route);
    let mut secure = Vec::new();
    if let (Some((number, backend)), Action::Upstream(main)) = (location.canary, route.action.clone()) {
        let canary = canary::read(&sources[number].annotations);
        let to = backend::upstream(&sources[number].annotations, backend, &keys);
        if let Ok(to) = to {
            for (conditions, goes) in canary.conditions {
                let mut one = route.clone();
                one.conditions.extend(conditions);
                one.action = Action::Upstream(if goes { to.clone() } else { main.clone() });
                secure.push(one);
            }
            route.action = match canary.weight {
                Some((weight, total)) if weight >= total => Action::Upstream(to),
                Some((weight, total)) => Action::Split(vec![(main, total - weight), (to, weight)]),
                None => Action::Upstream(main),
            };
        }
    }
    secure.push(route.clone());
    let redirect = redirect::to_https(annotations, site.has_tls || site.passthrough.is_some());
    let plain = match redirect {
        Some(redirect) if !location.path.starts_with(CHALLENGES) => {
            vec![Route::new(route.path, Action::Redirect(redirect))]
        }
        _ if site.client_auth.is_some() => {
            let mut closed = route;
            closed.keys.remove("client_auth");
            closed.close(403, "the host requires a client certificate, which needs HTTPS");
            vec![closed]
        }
        _ => secure.clone(),
    };
    Routes { secure, plain }
}

fn guard(
    annotations: &Annotations<'_, '_>,
    texts: &Texts,
    (site, sources): (&Site<'_>, &[Source<'_, '_>]),
    route: &mut Route,
) {
    access::apply(annotations, route);
    basic_auth::apply(annotations, route);
    external_auth::apply(annotations, texts, |path| local(site, sources, path), route);
    limits::apply(annotations, route);
    snippet::apply(annotations, route);
    if let Some(auth) = &site.client_auth {
        auth.apply(route);
    }
}

/// Returns the upstream of the location that a path of the host has, without its annotations: the exact one, or the longest
/// prefix. `None` if no location certainly has it.
fn local(site: &Site<'_>, sources: &[Source<'_, '_>], path: &str) -> Option<String> {
    let is_below = |prefix: &str| {
        path.strip_prefix(prefix.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let has = |one: &&Location<'_>| match one.kind {
        PathType::Exact => one.path == path,
        PathType::Prefix | PathType::ImplementationSpecific => is_below(one.path),
    };
    let found = site.locations.iter().filter(has);
    let found = found.max_by_key(|one| (one.path.len(), one.kind == PathType::Exact))?;
    // A location that is guarded in turn, or that responds otherwise, does not decide.
    let others = ["auth-url", "rewrite-target", "permanent-redirect", "temporal-redirect"];
    if others.iter().any(|name| sources[found.source].annotations.value(name).is_some()) {
        return None;
    }
    backend::upstream(&sources[found.source].annotations, found.backend, &Map::new()).ok()
}

/// Returns the values of variables at a location.
fn texts(annotations: &Annotations<'_, '_>, backend: &Backend, path: &Path) -> Texts {
    let mut context = Context { tls: true, port: 443, ..Context::default() };
    if let Path::Regex(expression) = path
        && let Ok(expression) = quadrille_config::values::whole_regex(expression)
    {
        context.groups = expression.captures_len() - 1;
        context.group_names = expression.capture_names().flatten().map(str::to_owned).collect();
    }
    Texts {
        namespace: annotations.meta.namespace.clone(),
        ingress: annotations.meta.name.clone(),
        service: backend.service.clone(),
        port: backend.port.clone(),
        context,
    }
}

/// Returns a copy of a route for requests that meet these conditions, too.
pub(crate) fn with_conditions(route: &Route, conditions: &Map) -> Route {
    let mut both = route.clone();
    for key in ["headers", "cookies"] {
        if let Some(Value::List(items)) = conditions.get(key) {
            let known = matches!(both.conditions.get(key), Some(Value::List(known)) if known == items);
            if !known {
                items.iter().for_each(|item| both.conditions.push(key, item.clone()));
            }
        }
    }
    both
}
