//! Rewriting of paths and locations, for upstream requests and redirects.

use crate::http::request::request_view::{RequestView, without_port};
use quadrille_config::model::{PathMatch, PathRewrite, PathRule, Redirect};
use std::borrow::Cow;

/// Rewrites a path that the route matched.
pub(crate) fn path<'a>(
    rewrite: &'a PathRewrite,
    matched: &PathMatch,
    request: &RequestView<'a>,
) -> Cow<'a, str> {
    let path = request.path;
    match rewrite {
        PathRewrite::Template(template) => request.render(template).into(),
        PathRewrite::Full(other) => other.into(),
        PathRewrite::Regex(expression, text) => expression.replace_all(path, text.as_str()),
        PathRewrite::Prefix(prefix) => {
            let Some(rest) = matched.matched().and_then(|length| path.get(length..)) else {
                return path.into();
            };
            // The slash after a whole segment is not part of the match. Envoy's prefixes are plain text.
            let doubled = matches!(matched.rule, PathRule::Segments(_)) && prefix.ends_with('/');
            format!("{prefix}{}", rest.strip_prefix('/').filter(|_| doubled).unwrap_or(rest)).into()
        }
    }
}

/// Returns the `Location` of a redirect.
pub(crate) fn location(redirect: &Redirect, matched: &PathMatch, request: &RequestView<'_>) -> String {
    let now = if request.tls { "https" } else { "http" };
    let scheme = redirect.scheme.as_deref().unwrap_or(now);
    let name = without_port(request.authority);
    let port = redirect.port.map(|port| port.to_string());
    // The rest of the authority is a port with its colon.
    let kept = request.authority[name.len()..].strip_prefix(':');
    let default = if request.tls { "443" } else { "80" };
    let kept = kept.filter(|kept| redirect.host.is_none() && !(scheme != now && *kept == default));
    let host = redirect.host.as_ref().map(|host| request.render(host));
    let host = host.as_deref().unwrap_or(name);
    let port = port.as_deref().or(kept).map(|port| format!(":{port}")).unwrap_or_default();
    let path = match &redirect.path {
        Some(rewrite) => self::path(rewrite, matched, request),
        None => request.path.into(),
    };
    let query = request.query.filter(|_| !redirect.strip_query && !path.contains('?'));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use quadrille_config::model::{RequestPart, Template, TemplatePart, whole};
    use regex::Regex;

    fn view<'a>(authority: &'a str, path: &'a str, headers: &'a HeaderMap, tls: bool) -> RequestView<'a> {
        RequestView { authority, method: "GET", path, query: Some("q=1"), headers, tls }
    }

    #[test]
    fn paths_are_rewritten() {
        let headers = HeaderMap::new();
        let expression = whole("/v([0-9]+)(/x)?").expect("an expression");
        let group = |number| TemplatePart::Request(RequestPart::Capture(expression.clone(), number));
        let template = Template(vec![
            TemplatePart::Request(RequestPart::Host),
            TemplatePart::Request(RequestPart::Path),
            TemplatePart::Literal("/".into()),
            group(1),
            group(2),
            TemplatePart::Request(RequestPart::Query),
        ]);
        let rule = |rule| PathMatch { rule, ignore_case: true };
        let prefix = |to: &str| PathRewrite::Prefix(to.into());
        let regex =
            |from, to: &str| PathRewrite::Regex(Regex::new(from).expect("an expression").into(), to.into());
        for (rewrite, matched, before, after) in [
            (prefix("/b"), PathMatch::segments("/a"), "/a/x", "/b/x"),
            (prefix("/"), PathMatch::segments("/a"), "/a/x", "/x"),
            (prefix("/"), PathMatch::segments("/a"), "/a", "/"),
            (prefix("/b/"), PathMatch::segments("/a"), "/a/x", "/b/x"),
            (prefix("/"), rule(PathRule::Prefix("/a".into())), "/a/x", "//x"),
            (prefix("/"), rule(PathRule::Prefix("/a/".into())), "/A/x", "/x"),
            (prefix("/b"), rule(PathRule::Exact("/a".into())), "/a", "/b"),
            (prefix("/b"), rule(PathRule::Regex(whole("/.*").expect("an expression"))), "/a", "/a"),
            (regex("^/v([0-9]+)/(.*)$", "/$2/${1}"), PathMatch::any(), "/v2/x", "/x/2"),
            (regex("a", "b"), PathMatch::any(), "/aa", "/bb"),
            (PathRewrite::Full("/c".into()), PathMatch::any(), "/aa", "/c"),
            (PathRewrite::Template(template), PathMatch::any(), "/v12", "h/v12/12q=1"),
        ] {
            let request = view("h:8443", before, &headers, true);
            assert_eq!(path(&rewrite, &matched, &request), after, "{rewrite:?} {before}");
        }
    }

    #[test]
    fn redirects_keep_what_they_do_not_change() {
        let headers = HeaderMap::new();
        let request = |authority, tls| view(authority, "/a/x", &headers, tls);
        let matched = PathMatch::segments("/a");
        let https = Redirect::https;
        let nothing = || Redirect { scheme: None, ..Redirect::https() };
        for (redirect, authority, tls, expected) in [
            (https(), "h", false, "https://h/a/x?q=1"),
            (https(), "h:80", false, "https://h/a/x?q=1"),
            (https(), "h:8080", false, "https://h:8080/a/x?q=1"),
            (https(), "h:443", true, "https://h:443/a/x?q=1"),
            (https(), "[::1]:80", false, "https://[::1]/a/x?q=1"),
            (Redirect { port: Some(8443), ..https() }, "h:80", false, "https://h:8443/a/x?q=1"),
            (
                Redirect { host: Some(Template::literal("o")), ..nothing() },
                "h:8443",
                true,
                "https://o/a/x?q=1",
            ),
            (Redirect { strip_query: true, ..nothing() }, "h", false, "http://h/a/x"),
            (
                Redirect { path: Some(PathRewrite::Prefix("/b".into())), ..nothing() },
                "h",
                true,
                "https://h/b/x?q=1",
            ),
            (
                Redirect { path: Some(PathRewrite::Full("/b?z=2".into())), ..nothing() },
                "h",
                true,
                "https://h/b?z=2",
            ),
        ] {
            assert_eq!(location(&redirect, &matched, &request(authority, tls)), expected);
        }
    }
}
