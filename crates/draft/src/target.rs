//! Targets of redirects: URLs with variables.

use crate::variables::{Context, Piece, group, header_value, pieces};
use crate::yaml::Map;

/// A redirect.
#[derive(Debug, PartialEq)]
pub enum Target {
    /// The value of `redirect`.
    Redirect(Map),
    /// A response with this header `Location`, for URLs that `redirect` cannot express.
    Location(String),
}

/// Converts the target of a redirect with this status. `keeps_query` means that the query follows unless the text ends
/// with `?`, as after `rewrite`.
///
/// # Errors
/// With the part that cannot be expressed.
pub fn target(text: &str, status: u16, keeps_query: bool, context: &Context) -> Result<Target, String> {
    if ![301, 302, 303, 307, 308].contains(&status) {
        return Err(format!("{status} is not a status of a redirect"));
    }
    match redirect(text, keeps_query, context) {
        Some(mut redirect) if !redirect.is_empty() => {
            let lacks = |keys: &[&str]| keys.iter().all(|key| redirect.get(key).is_none());
            if lacks(&["scheme", "host", "port", "path"]) {
                redirect.set("path", "{path}");
            } else if context.tls && lacks(&["host", "port", "path"]) {
                // A loop, which the reader refuses in its short form.
                redirect.set("host", "{host}");
            }
            let redirect = if status == 301 { redirect } else { redirect.with("status", u64::from(status)) };
            Ok(Target::Redirect(redirect))
        }
        _ if keeps_query => Err(format!("the target `{text}` cannot be expressed")),
        _ => header_value(text, context).map(Target::Location),
    }
}

fn redirect(text: &str, keeps_query: bool, context: &Context) -> Option<Map> {
    let mut redirect = Map::new();
    let rest = match text.split_once("://") {
        Some(("$scheme", rest)) => rest,
        Some((scheme @ ("http" | "https"), rest)) => {
            redirect.set("scheme", scheme);
            rest
        }
        Some(_) => return None,
        None => return path(text, keeps_query, context, redirect),
    };
    let ends = ["/", "$request_uri", "$uri", "$document_uri", "$is_args", "?"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => (host, Some(port)),
        Some(("$host" | "$server_name", "$server_port")) => ("$host", None),
        Some(_) => return None,
        None => (authority, None),
    };
    if host != "$http_host" {
        redirect.set("host", self::host(host, context)?);
    }
    if let Some(port) = port {
        redirect.set("port", port);
    }
    path(rest, keeps_query, context, redirect)
}

fn host(text: &str, context: &Context) -> Option<String> {
    let mut host = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => host.push_str(text),
            Piece::Variable("host" | "http_host") => host.push_str("{host}"),
            Piece::Variable("server_name") => host.push_str(context.server_name.as_deref()?),
            Piece::Variable(_) => return None,
        }
    }
    quadrille_config::values::host(&host.replace("{host}", "host.example")).ok().map(|_| host)
}

/// Adds path and query. Without a mention of the query, it is removed.
fn path(text: &str, keeps_query: bool, context: &Context, mut redirect: Map) -> Option<Map> {
    let (text, keeps) = match text {
        "$request_uri" | "$uri$is_args$args" | "$uri?$args" => return Some(redirect),
        "" => ("/", keeps_query),
        _ => match ["$is_args$args", "?$args", "?$query_string", "$is_args$query_string"]
            .iter()
            .find_map(|end| text.strip_suffix(end))
        {
            Some(text) => (text, true),
            None if keeps_query && text.ends_with('?') => (text.trim_end_matches('?'), false),
            None => (text, keeps_query),
        },
    };
    let (mut path, mut keeps, mut has_placeholder) = (String::new(), keeps, false);
    let pieces = pieces(text);
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => path.push_str(&text.replace('{', "{{")),
            Piece::Variable("uri" | "document_uri") => {
                path.push_str("{path}");
                has_placeholder = true;
            }
            Piece::Variable("request_uri") if index + 1 == pieces.len() => {
                path.push_str("{path}");
                (keeps, has_placeholder) = (true, true);
            }
            Piece::Variable("host") => {
                path.push_str("{host}");
                has_placeholder = true;
            }
            Piece::Variable(name) => {
                path.push_str(&group(name, context)?);
                has_placeholder = true;
            }
        }
    }
    let path = path.replace("/{path}", "{path}");
    let plain = path.split('?').next().unwrap_or_default();
    let good = path.starts_with('/') || path.starts_with("{path}");
    let query_is_possible = has_placeholder || !path.contains('?');
    let is_sendable =
        path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') && !plain.contains('*');
    if !good || !query_is_possible || !is_sendable {
        return None;
    }
    if path != "{path}" {
        redirect.set("path", path.as_str());
    }
    if !keeps && !path.contains('?') {
        redirect.set("strip_query", "on");
    }
    Some(redirect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::Value;

    fn shown(text: &str, keeps_query: bool) -> String {
        let context = Context {
            tls: false,
            port: 80,
            server_name: Some("s.example".into()),
            groups: 1,
            ..Context::default()
        };
        match target(text, 301, keeps_query, &context) {
            Ok(Target::Redirect(redirect)) => Value::Map(redirect).flow(),
            Ok(Target::Location(location)) => location,
            Err(problem) => format!("error: {problem}"),
        }
    }

    #[test]
    fn targets() {
        for (text, expected) in [
            ("https://$host$request_uri", "{ scheme: https, host: \"{host}\" }"),
            ("https://$server_name$request_uri", "{ scheme: https, host: s.example }"),
            ("$scheme://www.$host$request_uri", "{ host: \"www.{host}\" }"),
            (
                "https://a.example:8443/x",
                "{ scheme: https, host: a.example, port: 8443, path: /x, strip_query: on }",
            ),
            ("/new$is_args$args", "{ path: /new }"),
            ("/new/$1", "{ path: \"/new/{1}\", strip_query: on }"),
            ("/login?from=$uri", "{ path: \"/login?from={path}\" }"),
            ("/v1$request_uri", "{ path: \"/v1{path}\" }"),
            ("https://a.example/?x=1", "https://a.example/?x=1"),
        ] {
            assert_eq!(shown(text, false), expected, "{text}");
        }
        assert_eq!(shown("/new/$1", true), "{ path: \"/new/{1}\" }");
        assert_eq!(shown("/new/$1?", true), "{ path: \"/new/{1}\", strip_query: on }");
        assert!(shown("/$unknown", false).starts_with("error"));
    }
}
