//! All annotations of ingress-nginx's documentation, with their usual outcome and the test that shows it.

/// An annotation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The name without its prefix.
    pub(crate) name: &'static str,
    /// The outcome of values that no module judges.
    pub(crate) support: Support,
    /// Limits of what works; empty without limits.
    pub(crate) limits: &'static str,
    /// The function of the test.
    pub(crate) test: &'static str,
}

/// Outcome of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    Works,
    /// Has another effect, or needs no support.
    Differs(&'static str),
    /// Has no effect; the text is the remedy.
    Refused(&'static str),
}

/// Other names of annotations: those of earlier versions, and one that the documentation spells in two ways.
const ALIASES: &[(&str, &str)] = &[
    ("whitelist-source-range", "allowlist-source-range"),
    ("limit-whitelist", "limit-allowlist"),
    ("opentelemetry-trust-incoming-spans", "opentelemetry-trust-incoming-span"),
];

/// Returns the entry of an annotation, by any of its names.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    ALL.iter().find(|entry| entry.name == name)
}

const fn works(name: &'static str, limits: &'static str, test: &'static str) -> Entry {
    Entry { name, support: Support::Works, limits, test }
}

const fn differs(name: &'static str, text: &'static str, test: &'static str) -> Entry {
    Entry { name, support: Support::Differs(text), limits: text, test }
}

const fn refused(name: &'static str, text: &'static str, test: &'static str) -> Entry {
    Entry { name, support: Support::Refused(text), limits: text, test }
}

/// The annotations.
pub(crate) const ALL: &[Entry] = &[
    works("server-alias", "", "aliases_and_www"),
    works("allowlist-source-range", "", "source_ranges"),
    works("denylist-source-range", "", "source_ranges"),
    works("satisfy", "`any`: all conditions must hold, not only one of them", "source_ranges"),
    works("backend-protocol", "`FCGI` and `AJP` are not spoken: 503", "protocols_of_servers"),
    works("auth-type", "`digest` is not supported: 503", "passwords"),
    works("auth-secret", "hashes of bcrypt, SHA-crypt and Argon2; other users cannot log in", "passwords"),
    works("auth-secret-type", "", "passwords"),
    works("auth-realm", "", "passwords"),
    works("canary", "", "canaries"),
    works("canary-by-header", "", "canaries"),
    works("canary-by-header-value", "", "canaries"),
    works("canary-by-header-pattern", "expressions of RE2", "canaries"),
    works("canary-by-cookie", "", "canaries"),
    works("canary-weight", "", "canary_weights"),
    works("canary-weight-total", "", "canary_weights"),
    works(
        "auth-tls-secret",
        "of whole hosts; a missing or invalid certificate ends the handshake",
        "client_certificates",
    ),
    works(
        "auth-tls-verify-client",
        "`on` ends the handshake instead of 400; `optional_no_ca` is `optional`",
        "client_certificates",
    ),
    differs(
        "auth-tls-verify-depth",
        "chains of any length to the CA are accepted: restrict them by the CA's path length",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "auth-tls-error-page",
        "a failed handshake has no page: remove it",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "auth-tls-pass-certificate-to-upstream",
        "servers receive the subject, not the whole certificate: use `ssl-client-subject-dn`",
        "every_annotation_has_its_outcome",
    ),
    works("auth-tls-match-cn", "names, and lists of names in parentheses", "client_certificates"),
    differs(
        "client-body-buffer-size",
        "bodies are streamed, not buffered",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "configuration-snippet",
        "snippets are never used; one that may restrict access closes its paths with 503",
        "snippets_and_firewalls",
    ),
    differs(
        "connection-proxy-header",
        "connections to servers are kept open, and upgraded where a request has `Upgrade`",
        "every_annotation_has_its_outcome",
    ),
    works("enable-cors", "preflight requests receive 200, not 204", "cross_origin_requests"),
    works("cors-allow-origin", "`*` in a host stands for several labels", "cross_origin_requests"),
    works("cors-allow-methods", "", "cross_origin_requests"),
    works("cors-allow-headers", "", "cross_origin_requests"),
    works("cors-expose-headers", "", "cross_origin_requests"),
    works(
        "cors-allow-credentials",
        "not with the origin `*`, for which browsers refuse them",
        "cross_origin_requests",
    ),
    works("cors-max-age", "", "cross_origin_requests"),
    differs(
        "custom-http-errors",
        "the status is kept, and the body is a short page of the gateway",
        "errors_of_servers",
    ),
    works("default-backend", "used while the Service has no ready endpoints", "default_backends"),
    works("disable-proxy-intercept-errors", "", "errors_of_servers"),
    works("custom-headers", "", "headers_of_responses"),
    works(
        "auth-url",
        "the server receives the `Host` of the request; of variables, `$host` is known where an Ingress of the host has the path; with others 503",
        "external_authentication",
    ),
    works("auth-method", "GET only: 503 otherwise", "external_authentication"),
    refused(
        "auth-signin",
        "clients receive the response of the authorization server: let it redirect by itself (oauth2-proxy: a `static` upstream)",
        "external_authentication",
    ),
    refused("auth-signin-redirect-param", "see `auth-signin`", "every_annotation_has_its_outcome"),
    works(
        "auth-response-headers",
        "headers of these names from clients are removed on all paths",
        "external_authentication",
    ),
    refused(
        "auth-proxy-set-headers",
        "the authorization server receives the headers of the request only: 503",
        "guards_that_cannot_be_done_close",
    ),
    differs(
        "auth-request-redirect",
        "the authorization server receives `X-Forwarded-Uri` and `X-Original-URL`, not `X-Auth-Request-Redirect`",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "auth-cache-key",
        "every request is decided by the server: nothing is cached",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "auth-cache-duration",
        "every request is decided by the server: nothing is cached",
        "every_annotation_has_its_outcome",
    ),
    works("auth-keepalive", "", "external_authentication"),
    differs(
        "auth-keepalive-share-vars",
        "the server has no variables of the request, only its headers",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "auth-keepalive-requests",
        "connections are not limited by requests",
        "every_annotation_has_its_outcome",
    ),
    works("auth-keepalive-timeout", "", "external_authentication"),
    works("auth-always-set-cookie", "", "external_authentication"),
    refused("auth-snippet", "snippets are never used: 503", "guards_that_cannot_be_done_close"),
    works("enable-global-auth", "", "global_authentication"),
    refused(
        "fastcgi-index",
        "FastCGI is not spoken: put a server that speaks HTTP in front",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "fastcgi-params-configmap",
        "FastCGI is not spoken: put a server that speaks HTTP in front",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "http2-push-preload",
        "no browser has server push anymore: remove it",
        "every_annotation_has_its_outcome",
    ),
    works("limit-connections", "counts active requests; beyond it 429", "limits"),
    works("limit-rps", "beyond it 429", "limits"),
    works("limit-rpm", "beyond it 429", "limits"),
    works("limit-burst-multiplier", "", "limits"),
    differs("limit-allowlist", "its clients are limited, too", "every_annotation_has_its_outcome"),
    refused(
        "limit-rate",
        "the rate of a response is not limited: limit it at the servers",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "limit-rate-after",
        "the rate of a response is not limited: limit it at the servers",
        "every_annotation_has_its_outcome",
    ),
    works("load-balance", "`ewma` is `least_request`", "load_balancing"),
    differs(
        "enable-access-log",
        "the access log is one for all requests: see `access_log`",
        "every_annotation_has_its_outcome",
    ),
    refused("enable-rewrite-log", "use `quadrille routes explain URL`", "every_annotation_has_its_outcome"),
    works("mirror-target", "copies have the path of the request", "copies_of_requests"),
    differs("mirror-request-body", "copies always have the body", "copies_of_requests"),
    differs("mirror-host", "copies have the `Host` of the request", "every_annotation_has_its_outcome"),
    refused(
        "enable-modsecurity",
        "put a firewall in front, or do without; if it blocks (`SecRuleEngine On`), its paths respond with 503",
        "snippets_and_firewalls",
    ),
    refused("enable-owasp-core-rules", "see `enable-modsecurity`", "snippets_and_firewalls"),
    refused("modsecurity-transaction-id", "see `enable-modsecurity`", "every_annotation_has_its_outcome"),
    refused("modsecurity-snippet", "see `enable-modsecurity`", "snippets_and_firewalls"),
    differs(
        "enable-opentelemetry",
        "tracing is one for all requests: see `tracing`",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "opentelemetry-trust-incoming-span",
        "applies to all requests: see `tracing.parents`",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "opentelemetry-operation-name",
        "spans have the method and the route",
        "every_annotation_has_its_outcome",
    ),
    works("permanent-redirect", "", "redirects"),
    works("permanent-redirect-code", "", "redirects"),
    works("temporal-redirect", "", "redirects"),
    works("temporal-redirect-code", "", "redirects"),
    differs("relative-redirects", "redirects are absolute URLs", "every_annotation_has_its_outcome"),
    works("preserve-trailing-slash", "redirects to HTTPS always keep it", "redirects_to_https"),
    works("proxy-body-size", "", "sizes_of_bodies"),
    refused(
        "proxy-cookie-domain",
        "`Set-Cookie` is not changed: let servers set the domain that clients see",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "proxy-cookie-path",
        "`Set-Cookie` is not changed: let servers set the path that clients see",
        "every_annotation_has_its_outcome",
    ),
    works("proxy-connect-timeout", "", "timeouts_of_servers"),
    works("proxy-send-timeout", "", "every_annotation_has_its_outcome"),
    works("proxy-read-timeout", "", "timeouts_of_servers"),
    works("proxy-next-upstream", "no retry after `proxy-read-timeout`", "retries"),
    differs(
        "proxy-next-upstream-timeout",
        "retries are limited by their number alone",
        "every_annotation_has_its_outcome",
    ),
    works("proxy-next-upstream-tries", "at most ten retries", "retries"),
    differs(
        "proxy-request-buffering",
        "bodies are streamed, and up to 96 KiB kept for retries",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "proxy-redirect-from",
        "`Location` of servers is not changed: let them build URLs with the `Host` that they receive",
        "every_annotation_has_its_outcome",
    ),
    refused("proxy-redirect-to", "see `proxy-redirect-from`", "every_annotation_has_its_outcome"),
    works("proxy-http-version", "`1.0` is 1.1", "protocols_of_servers"),
    works("proxy-ssl-secret", "", "tls_to_servers"),
    works("proxy-ssl-ciphers", "names of suites, not classes", "every_annotation_has_its_outcome"),
    works("proxy-ssl-name", "", "tls_to_servers"),
    works("proxy-ssl-protocols", "", "tls_to_servers"),
    works("proxy-ssl-verify", "", "tls_to_servers"),
    differs(
        "proxy-ssl-verify-depth",
        "chains of any length to the CA are accepted",
        "every_annotation_has_its_outcome",
    ),
    works("proxy-ssl-server-name", "the name is always sent", "tls_to_servers"),
    differs("proxy-buffering", "responses are streamed, not buffered", "every_annotation_has_its_outcome"),
    differs(
        "proxy-buffers-number",
        "responses are streamed, not buffered",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "proxy-buffer-size",
        "headers of responses may have 64 KiB, and are not buffered",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "proxy-busy-buffers-size",
        "responses are streamed, not buffered",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "proxy-max-temp-file-size",
        "responses are streamed, never to a file",
        "every_annotation_has_its_outcome",
    ),
    works("app-root", "", "redirects"),
    works("force-ssl-redirect", "", "redirects_to_https"),
    works("ssl-redirect", "", "redirects_to_https"),
    works("rewrite-target", "without a query", "rewritten_paths"),
    works("use-regex", "expressions of RE2", "paths_as_expressions"),
    works("from-to-www-redirect", "", "aliases_and_www"),
    works("ssl-ciphers", "names of suites, not classes; of whole hosts", "tls_of_hosts"),
    differs(
        "ssl-prefer-server-ciphers",
        "the order of `ssl-ciphers` counts where it is set",
        "every_annotation_has_its_outcome",
    ),
    works("ssl-passthrough", "", "passthrough"),
    refused(
        "server-snippet",
        "snippets are never used; one that may restrict access closes its paths with 503",
        "snippets_and_firewalls",
    ),
    refused(
        "stream-snippet",
        "snippets are never used; one that may restrict access closes its paths with 503",
        "snippets_and_firewalls",
    ),
    works("service-upstream", "", "services_and_endpoints"),
    works("affinity", "`cookie`", "session_affinity"),
    differs(
        "affinity-mode",
        "sessions are balanced by a consistent hash in both modes",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "affinity-canary-behavior",
        "canaries are selected for each request, as with `legacy`",
        "every_annotation_has_its_outcome",
    ),
    works("session-cookie-name", "", "session_affinity"),
    works("session-cookie-path", "`/` by default", "session_affinity"),
    refused(
        "session-cookie-domain",
        "the cookie has the host of the request: remove it, or use `upstream-hash-by`",
        "every_annotation_has_its_outcome",
    ),
    works("session-cookie-max-age", "", "session_affinity"),
    works("session-cookie-expires", "by `Max-Age`", "session_affinity"),
    refused(
        "session-cookie-samesite",
        "the cookie has no `SameSite`: browsers treat it as `Lax`",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "session-cookie-conditional-samesite-none",
        "the cookie has no `SameSite`",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "session-cookie-secure",
        "the cookie has `Secure` over HTTPS only",
        "every_annotation_has_its_outcome",
    ),
    refused(
        "session-cookie-partitioned",
        "the cookie has no `Partitioned`: sites that embed it in others need it",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "session-cookie-change-on-failure",
        "another server is used while one fails, and the cookie stays",
        "every_annotation_has_its_outcome",
    ),
    works("upstream-hash-by", "headers, cookies, parameters and the client's address", "load_balancing"),
    differs(
        "upstream-hash-by-subset",
        "each value has one server, not a subset",
        "every_annotation_has_its_outcome",
    ),
    differs(
        "upstream-hash-by-subset-size",
        "each value has one server, not a subset",
        "every_annotation_has_its_outcome",
    ),
    works("upstream-vhost", "", "headers_for_servers"),
    differs(
        "use-port-in-redirects",
        "redirects have the port of the request, and to HTTPS none",
        "every_annotation_has_its_outcome",
    ),
    works("x-forwarded-prefix", "with `rewrite-target`, as in ingress-nginx", "rewritten_paths"),
];
