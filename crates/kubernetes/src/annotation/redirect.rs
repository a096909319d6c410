//! Redirects: to HTTPS, to another URL, to the root of the application, and between a host and its `www`.

use super::{Annotations, Texts};
use quadrille_draft::{
    draft::{Action, Path, Route},
    target::{Target, target},
    yaml::Map,
};

/// Redirects all requests of a route, if the Ingress says so. Returns whether it does: the response comes before access
/// rules then, as in nginx.
pub(crate) fn whole(annotations: &Annotations<'_, '_>, texts: &Texts, route: &mut Route) -> bool {
    let (name, code_name, usual) = match annotations.value("temporal-redirect") {
        Some(_) => ("temporal-redirect", "temporal-redirect-code", 302),
        None => ("permanent-redirect", "permanent-redirect-code", 301),
    };
    let Some(url) = annotations.value(name) else { return false };
    let code = match annotations.number(code_name) {
        Some(code @ (301 | 302 | 303 | 307 | 308)) => u16::try_from(code).unwrap_or(usual),
        Some(_) => {
            annotations.refuse(code_name, format!("not a status of a redirect: {usual} is sent"));
            usual
        }
        None => usual,
    };
    match target(&texts.substituted(url), code, false, &texts.context) {
        Ok(Target::Redirect(redirect)) => route.action = Action::Redirect(redirect),
        Ok(Target::Location(location)) => {
            route.action = Action::status(code);
            route.keys.push("response_headers", Map::of("set", "Location").with("value", location));
        }
        Err(problem) => {
            annotations.refuse(
                name,
                format!("{problem}: write a URL without it; its paths respond with 503 meanwhile"),
            );
            route.close(503, &format!("{}: {problem}", annotations.shown(name)));
        }
    }
    true
}

/// Returns the route of the host's root, which `app-root` redirects.
pub(crate) fn root(annotations: &Annotations<'_, '_>) -> Option<Route> {
    let path = annotations.value("app-root")?;
    match quadrille_config::values::path(path) {
        Ok(path) if path != "/" => {
            let redirect = Map::of("path", path).with("status", "302").with("strip_query", "on");
            Some(Route::new(Path::Exact("/".to_owned()), Action::Redirect(redirect)))
        }
        Ok(_) => None,
        Err(problem) => {
            annotations.refuse("app-root", problem.to_string());
            None
        }
    }
}

/// Returns the redirect of requests over HTTP, if they must use HTTPS.
pub(crate) fn to_https(annotations: &Annotations<'_, '_>, has_tls: bool) -> Option<Map> {
    let forced = annotations.flag_or_global("force-ssl-redirect", false);
    let wanted = annotations.flag_or_global("ssl-redirect", true) && has_tls;
    let code = annotations.world.globals.get("http-redirect-code").unwrap_or("308");
    (forced || wanted).then(|| Map::of("scheme", "https").with("status", code))
}

/// Returns the other name of a host and the redirect to it, if `from-to-www-redirect` is set.
pub(crate) fn www(annotations: &Annotations<'_, '_>, host: &str) -> Option<(String, Map)> {
    if annotations.flag("from-to-www-redirect") != Some(true) || host.is_empty() || host.starts_with('*') {
        return None;
    }
    let other = match host.strip_prefix("www.") {
        Some(bare) => bare.to_owned(),
        None => format!("www.{host}"),
    };
    let code = annotations.world.globals.get("http-redirect-code").unwrap_or("308");
    Some((other, Map::of("host", host).with("status", code)))
}
