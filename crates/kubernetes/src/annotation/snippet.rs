//! Snippets and the firewall ModSecurity: they are never used. What guards closes its paths.

use super::Annotations;
use quadrille_draft::draft::Route;

/// Directives of snippets that restrict nothing.
const HARMLESS: &[&str] = &[
    "access_log",
    "add_header",
    "add_trailer",
    "brotli",
    "charset",
    "client_body_buffer_size",
    "etag",
    "expires",
    "gzip",
    "gzip_types",
    "keepalive_timeout",
    "log_subrequest",
    "more_clear_headers",
    "more_clear_input_headers",
    "more_set_headers",
    "more_set_input_headers",
    "open_file_cache",
    "port_in_redirect",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_connect_timeout",
    "proxy_cookie_path",
    "proxy_hide_header",
    "proxy_pass_header",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_set_header",
    "rewrite_log",
    "set",
    "sub_filter",
    "sub_filter_once",
];

/// Judges the snippets of an Ingress; closes the route if one may restrict access.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    for name in ["configuration-snippet", "server-snippet", "stream-snippet"] {
        let Some(text) = annotations.value(name) else { continue };
        match guard(text) {
            None => annotations.refuse(
                name,
                "snippets are not used: express it by annotations, or by keys of the configuration",
            ),
            Some(directive) => {
                annotations.refuse(
                    name,
                    format!("snippets are not used, and `{directive}` may restrict access: express it by annotations; its paths respond with 503 meanwhile"),
                );
                route.close(503, &format!("{}: `{directive}` may restrict access", annotations.shown(name)));
            }
        }
    }
    firewall(annotations, route);
}

/// Returns the snippets of an Ingress that may restrict access.
pub(crate) fn guarding(annotations: &Annotations<'_, '_>) -> Vec<&'static str> {
    let names = ["configuration-snippet", "server-snippet", "stream-snippet"];
    let may_guard = |name: &&str| annotations.value(name).is_some_and(|text| guard(text).is_some());
    let mut found: Vec<_> = names.into_iter().filter(|name| may_guard(name)).collect();
    if annotations.flag("enable-modsecurity") == Some(true) {
        found.push("enable-modsecurity");
    }
    found
}

/// Closes the route if ModSecurity would block requests: without `SecRuleEngine On` it only detects.
fn firewall(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let is_on = annotations
        .flag("enable-modsecurity")
        .unwrap_or(annotations.world.globals.flag("enable-modsecurity", false));
    let rules =
        [annotations.value("modsecurity-snippet"), annotations.world.globals.get("modsecurity-snippet")];
    let blocks = rules.iter().flatten().any(|rules| {
        let words: Vec<_> = rules.split_whitespace().collect();
        words.windows(2).any(|pair| {
            pair[0].eq_ignore_ascii_case("SecRuleEngine")
                && pair[1].trim_matches('"').eq_ignore_ascii_case("on")
        })
    });
    if annotations.flag("enable-modsecurity") == Some(false) {
        annotations.works("enable-modsecurity");
    }
    if annotations.flag("enable-owasp-core-rules") == Some(false) {
        annotations.works("enable-owasp-core-rules");
    }
    if is_on && blocks {
        let remedy =
            "its firewall would block requests: put one in front; its paths respond with 503 meanwhile";
        annotations.refuse("modsecurity-snippet", remedy);
        route.close(503, &format!("{}: the firewall is not there", annotations.shown("modsecurity-snippet")));
    }
}

/// Returns the first directive that may restrict access.
fn guard(snippet: &str) -> Option<String> {
    let without_comments: String = snippet
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default())
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n");
    let mut quote = None;
    let mut statement = String::new();
    let mut statements = Vec::new();
    for c in without_comments.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ';' | '{' | '}') => {
                statements.push(std::mem::take(&mut statement));
                if c != ';' {
                    // A block may hold anything.
                    statements.push("{".to_owned());
                }
                continue;
            }
            _ => {}
        }
        statement.push(c);
    }
    statements.push(statement);
    let names = statements.iter().filter_map(|one| one.split_whitespace().next());
    names.filter(|name| !HARMLESS.contains(name)).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_that_may_restrict_access_are_found() {
        for (text, expected) in [
            ("more_set_headers \"X-A: 1; b\";\nproxy_set_header X-B $host;", None),
            ("# deny all;\nexpires 1h;", None),
            ("deny all;", Some("deny")),
            ("add_header X-A a; auth_basic x;", Some("auth_basic")),
            ("if ($http_x = 1) { return 403; }", Some("if")),
            ("", None),
        ] {
            assert_eq!(guard(text).as_deref(), expected, "{text}");
        }
    }
}
