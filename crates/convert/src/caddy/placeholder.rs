//! Caddy's placeholders, as those of header values and redirects.

use crate::yaml::Map;

/// Converts the value of a header; `None` if it has other placeholders, or is empty.
pub(super) fn header_value(text: &str) -> Option<String> {
    let value = converted(text)?;
    let is_sendable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (is_sendable && !value.is_empty()).then_some(value)
}

fn converted(text: &str) -> Option<String> {
    let (mut value, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        value.push_str(before);
        let known = match name {
            "http.request.host" | "http.request.hostport" => "{host}",
            "http.request.remote.host" | "http.vars.client_ip" => "{client_ip}",
            "http.request.remote" => "{client}",
            "http.request.scheme" => "{scheme}",
            "http.request.uri.path" => "{path}",
            "http.request.uri.query" => "{query}",
            "http.request.proto" => "{protocol}",
            "http.request.tls.server_name" => "{server_name}",
            "http.request.tls.client.subject" => "{client_certificate_subject}",
            _ => "",
        };
        match name.strip_prefix("http.request.header.") {
            Some(header) => value.push_str(&format!("{{request:{header}}}")),
            None if known.is_empty() => return None,
            None => value.push_str(known),
        }
        rest = after;
    }
    value.push_str(rest);
    Some(value)
}

/// Converts the `Location` of a redirect to the value of `redirect`; `None` if it cannot be expressed.
pub(super) fn redirect(location: &str, status: u64) -> Option<Map> {
    if ![301, 302, 303, 307, 308].contains(&status) {
        return None;
    }
    let mut map = Map::new();
    let rest = match location.split_once("://") {
        Some((scheme, rest)) => {
            match scheme {
                "http" | "https" => map.set("scheme", scheme),
                "{http.request.scheme}" => {}
                _ => return None,
            }
            let braces_end = rest.strip_prefix('{').and_then(|_| rest.find('}')).map_or(0, |at| at + 1);
            let end = rest[braces_end..].find(['/', '{']).map_or(rest.len(), |at| at + braces_end);
            let (authority, path) = rest.split_at(end);
            let authority = authority.replace("{http.request.host}", "{host}");
            let (host, port) = match authority.rsplit_once(':') {
                Some((host, port)) => (host.to_owned(), Some(port.to_owned())),
                None => (authority, None),
            };
            quadrille_config::values::host(&host.replace("{host}", "host.example")).ok()?;
            map.set("host", host);
            if let Some(port) = port {
                quadrille_config::values::port(&port).ok()?;
                map.set("port", port);
            }
            path
        }
        None => location,
    };
    match rest.strip_suffix("{http.request.uri}") {
        Some("") if !map.is_empty() => {}
        Some(prefix) => map.set(
            "path",
            format!("{}{{path}}", quadrille_config::values::path(prefix).ok()?.trim_end_matches('/')),
        ),
        None => {
            let path = rest.replace("{http.request.uri.path}", "{path}");
            let path = if path.is_empty() { "/".to_owned() } else { path };
            let plain = path.replace("{path}", "/p");
            quadrille_config::values::path(&plain.replace("//", "/")).ok()?;
            if plain.contains('{') {
                return None;
            }
            map.set("path", path.replace("/{path}", "{path}"));
            map.set("strip_query", "on");
        }
    }
    Some(if status == 301 { map } else { map.with("status", status) })
}
