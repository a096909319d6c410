//! External authentication: `auth-url` and its family, and `global-auth-url` of the ConfigMap.

use super::{Annotations, Texts, text::list};
use quadrille_draft::{draft::Route, values, yaml::Map};

/// Lets an authorization server decide about the requests of a route; closes it if that cannot be expressed.
///
/// `local` returns the upstream of a path of the route's own host, for URLs that name the host by `$host`.
pub(crate) fn apply(
    annotations: &Annotations<'_, '_>,
    texts: &Texts,
    local: impl Fn(&str) -> Option<String>,
    route: &mut Route,
) {
    let globals = &annotations.world.globals;
    let own = annotations.value("auth-url");
    let is_global = own.is_none() && annotations.flag("enable-global-auth").unwrap_or(true);
    let Some(url) = own.or_else(|| globals.get("global-auth-url").filter(|_| is_global)) else { return };
    let headers = match own {
        Some(_) => annotations.value("auth-response-headers"),
        None => globals.get("global-auth-response-headers"),
    };
    let outcome =
        blockers(annotations).map_or(Ok(()), Err).and_then(|()| server(annotations, texts, &local, url));
    match outcome {
        Ok(mut authorization) => {
            let copied: Vec<_> = headers.into_iter().flat_map(list).map(str::to_owned).collect();
            if let Some(bad) = copied.iter().find(|name| quadrille_config::values::header_name(name).is_err())
            {
                annotations.refuse("auth-response-headers", format!("`{bad}` is not the name of a header"));
            } else if !copied.is_empty() {
                authorization.set("copy_headers", copied);
            }
            authorization.set("client_headers", vec!["Set-Cookie"]);
            route.keys.set("authorization", authorization);
        }
        Err((name, problem)) => {
            annotations.refuse(name, format!("{problem}; its paths respond with 503 meanwhile"));
            route.close(503, &format!("{}: {problem}", annotations.shown(name)));
        }
    }
}

/// An annotation with the reason for which the authorization server cannot decide as it would for ingress-nginx.
type Blocker = (&'static str, String);

fn blockers(annotations: &Annotations<'_, '_>) -> Option<Blocker> {
    if let Some(method) = annotations.value("auth-method").filter(|method| *method != "GET") {
        return Some((
            "auth-method",
            format!(
                "the authorization server receives GET, not {method}: let it accept GET, then remove the annotation"
            ),
        ));
    }
    if annotations.value("auth-snippet").is_some() {
        return Some((
            "auth-snippet",
            "snippets are not used: let the authorization server do without it".to_owned(),
        ));
    }
    if annotations.value("auth-proxy-set-headers").is_some() {
        return Some((
            "auth-proxy-set-headers",
            "the authorization server receives the headers of the request only: put the values into the path of `auth-url`"
                .to_owned(),
        ));
    }
    None
}

fn server(
    annotations: &Annotations<'_, '_>,
    texts: &Texts,
    local: &impl Fn(&str) -> Option<String>,
    url: &str,
) -> Result<Map, Blocker> {
    let problem = |text: String| ("auth-url", text);
    let url = texts.substituted(url);
    let of_host = ["$host", "$http_host", "$server_name"];
    if let Some((authority, path)) = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'))
        && of_host.contains(&authority)
        && !path.contains('$')
        && let Some(upstream) = local(&format!("/{}", path.split('?').next().unwrap_or_default()))
    {
        return Ok(Map::of("upstream", upstream).with("path", format!("/{path}")));
    }
    if url.contains('$') {
        return Err(problem(
            "the URL has variables: write a fixed one, or `$host` with a path of an Ingress of the same host"
                .to_owned(),
        ));
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| problem(format!("`{url}` is not a URL")))?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err(problem(format!("`{scheme}` is not http or https"))),
    };
    let address = values::server_address(authority, port)
        .ok_or_else(|| problem(format!("`{authority}` is not a host with a port")))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut upstream = Map::of("servers", vec![address]);
    if scheme == "https" {
        upstream.set("tls", "on");
    }
    if let Some(count) = annotations.number("auth-keepalive").filter(|count| *count > 0) {
        upstream.set("pool", count);
    }
    if let Some(time) = annotations.number("auth-keepalive-timeout").and_then(|s| values::shown(s * 1_000)) {
        upstream.inner("timeouts").set("idle", time);
    }
    let name = format!("auth-{}", authority.replace([':', '[', ']'], "-"));
    let name = annotations.world.draft.borrow_mut().upstream(&name, upstream);
    let bare = path.split('?').next().unwrap_or_default();
    quadrille_config::values::path(bare).map_err(|error| problem(error.to_string()))?;
    Ok(Map::of("upstream", name).with("path", path))
}
