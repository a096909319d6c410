//! Names from other servers' configurations, with what to write instead: a similar name of this file's would mislead.

use crate::Problem;

const NOT_SERVED: &str = "files are not served; forward to a web server, or use `respond` for a short text";
const NOT_CACHED: &str = "responses are not cached; use a cache, such as Varnish, as an upstream";
const NO_FASTCGI: &str =
    "FastCGI and uwsgi are not supported; forward to a server that speaks HTTP, such as nginx";
const NO_SCRIPTS: &str = "scripts and plugins are not supported";

/// Names of settings, and the reason or the remedy.
const FOREIGN: &[(&str, &str)] = &[
    ("root", NOT_SERVED),
    ("alias", NOT_SERVED),
    ("index", NOT_SERVED),
    ("try_files", NOT_SERVED),
    ("autoindex", NOT_SERVED),
    ("file_server", NOT_SERVED),
    ("static", NOT_SERVED),
    ("cache", NOT_CACHED),
    ("caching", NOT_CACHED),
    ("proxy_cache", NOT_CACHED),
    ("proxy_cache_path", NOT_CACHED),
    ("fastcgi", NO_FASTCGI),
    ("fastcgi_pass", NO_FASTCGI),
    ("php_fastcgi", NO_FASTCGI),
    ("uwsgi_pass", NO_FASTCGI),
    ("scgi_pass", NO_FASTCGI),
    ("lua", NO_SCRIPTS),
    ("wasm", NO_SCRIPTS),
    ("plugins", NO_SCRIPTS),
    ("middlewares", NO_SCRIPTS),
    ("proxy_pass", "write `upstream`, the name of an entry of `upstreams`"),
    ("reverse_proxy", "write `upstream`, the name of an entry of `upstreams`"),
    ("backend", "write `upstream`, the name of an entry of `upstreams`"),
    ("server_name", "write `host` in a route, or `match: {server_names: [...]}` in a listener"),
    ("listen", "write `address` in a listener"),
    ("bind", "write `address` in a listener"),
    ("location", "write `routes` in a listener"),
    ("locations", "write `routes` in a listener"),
    ("return", "write `respond` or `redirect` in a route"),
    ("ssl", "write `tls`"),
    ("ssl_certificate", "write `certificates: [{chain: ..., key: ...}]` in a listener"),
    ("ssl_certificate_key", "write `certificates: [{chain: ..., key: ...}]` in a listener"),
    ("ssl_protocols", "write `tls: {min: ..., max: ...}` in a listener"),
    ("add_header", "write `response_headers` in a listener or route"),
    ("proxy_set_header", "write `request_headers` in a listener or route"),
    ("client_max_body_size", "write `limits: {body: ...}` in a listener or route"),
    ("gzip", "write `compression: on` in a listener or route"),
    ("resolvers", "write `resolver` at the top level"),
    ("dns", "write `resolver: {servers: [...]}` at the top level"),
    ("backup", "write `priority: 1` for a server"),
    ("max_conns", "write `max_connections` for a server"),
    ("maxconn", "write `max_connections` for a server"),
    ("maxqueue", "write `limits: {pending: ...}` in an upstream"),
    ("slowstart", "write `slow_start` in an upstream"),
    ("resolve", "names are resolved again by themselves; see `dns_refresh` of an upstream"),
];

/// Returns the mistake for a key that other servers have, and this file does not.
pub(super) fn foreign(name: &str) -> Option<Problem> {
    let (_, remedy) = FOREIGN.iter().find(|(known, _)| *known == name)?;
    Some(Problem::new("unknown key", *remedy))
}
