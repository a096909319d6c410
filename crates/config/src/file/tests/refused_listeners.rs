//! Mistakes in listeners, with the exact messages that the user sees.

use super::{Case, check, listener};

#[test]
fn listeners() {
    check(LISTENERS, listener);
}

#[test]
fn addresses() {
    check(ADDRESSES, |text| {
        format!("listeners: [{{address: {text}, certificates: [{{chain: c, key: k}}], respond: hi}}]")
    });
}

#[test]
fn certificates() {
    check(CERTIFICATES, |text| format!("listeners: [{{address: 8443, certificates: {text}, respond: hi}}]"));
}

#[test]
fn routes() {
    check(ROUTES, |text| listener(&format!("routes: [{text}]")));
}

#[test]
fn compression() {
    check(COMPRESSION, |text| listener(&format!("respond: hi, compression: {text}")));
}

const COMPRESSION: &[Case] = &[
    ("gzip", "q.yaml:1: listeners[0].compression: `gzip` is not a switch; use on or off"),
    (
        "{algorithms: [deflate]}",
        "q.yaml:1: listeners[0].compression.algorithms[0]: `deflate` is not an algorithm; use zstd, br or gzip",
    ),
    (
        "{types: [text]}",
        "q.yaml:1: listeners[0].compression.types[0]: `text` is not a media type; write one without parameters, such as `text/html`, or `text/*`",
    ),
    ("{cookies: [a=b]}", "q.yaml:1: listeners[0].compression.cookies[0]: not the name of a cookie"),
    ("{minimum: 1kb}", "q.yaml:1: listeners[0].compression.minimum: `1kb` is not a size; write `1KiB`"),
];

#[test]
fn error_pages() {
    check(ERROR_PAGES, |text| listener(&format!("respond: hi, error_pages: {text}")));
}

const ERROR_PAGES: &[Case] = &[
    (
        "[{file: f}]",
        "q.yaml:1: listeners[0].error_pages[0]: `status` is missing; add `status: ...` (`400` to `599`, `4xx`, `5xx`, or a list of them)",
    ),
    (
        "[{status: 200, body: x}]",
        "q.yaml:1: listeners[0].error_pages[0].status: `200` is not an error status; write 400 to 599, `4xx` or `5xx`",
    ),
    (
        "[{status: [], body: x}]",
        "q.yaml:1: listeners[0].error_pages[0].status: the list is empty; give it at least one item",
    ),
    ("[{status: 404}]", "q.yaml:1: listeners[0].error_pages[0]: the page is empty; add `file` or `body`"),
    (
        "[{status: 404, file: f, body: x}]",
        "q.yaml:1: listeners[0].error_pages[0].body: a page has a `file` or a `body`; remove one",
    ),
];

#[test]
fn rules() {
    check(RULES, |text| listener(&format!("respond: hi, rules: [{text}]")));
}

const RULES: &[Case] = &[
    ("{deny: 403}", "q.yaml:1: listeners[0].rules[0]: `when` is missing; add `when: ...` (mapping)"),
    (
        "{when: {path: /a}}",
        "q.yaml:1: listeners[0].rules[0]: the rule has no action; add `deny: 403`, or another action",
    ),
    (
        "{when: {}, deny: 403}",
        "q.yaml:1: listeners[0].rules[0].when: the rule would apply to every request; add a condition",
    ),
    (
        "{when: {path: /a}, deny: 200}",
        "q.yaml:1: listeners[0].rules[0].deny: `200` is not the status of an error; use 400 to 599, such as 403",
    ),
    (
        "{when: {path: /a, path_exact: /b}, deny: 403}",
        "q.yaml:1: listeners[0].rules[0].when.path_exact: a rule has one path; remove one, or write two rules",
    ),
    (
        "{when: {path: /a}, deny: 403, respond: hi}",
        "q.yaml:1: listeners[0].rules[0].respond: a rule has one action; write two rules",
    ),
    (
        "{when: {path: /a}, request_headers: [{set: X-A, value: '{1}'}]}",
        "q.yaml:1: listeners[0].rules[0].request_headers[0].value: `{1}` is a group of `path_regex`, which is not set here; write `path_regex` with a group in parentheses, such as `/old/(.*)`",
    ),
    (
        "{when: {methods: ['G T']}, deny: 403}",
        "q.yaml:1: listeners[0].rules[0].when.methods[0]: `G T` is not a method; write `GET`, `POST` or the like",
    ),
];

const LISTENERS: &[Case] = &[
    ("mod: http, respond: hi", "q.yaml:1: listeners[0].mod: unknown key; did you mean `mode`?"),
    (
        "poll_delay: 1ms, respond: hi",
        "q.yaml:1: listeners[0].poll_delay: unknown key here; it belongs in `engine`",
    ),
    (
        "quux: 1, respond: hi",
        "q.yaml:1: listeners[0].quux: unknown key; known here are `address`, `match`, `mode`, `certificates`, `tls`, `routes`, `upstream`, `respond`, `request_headers`, `response_headers`, `hsts`, `compression`, `error_pages`, `paths`, `proxy_protocol`, `http3`, `alt_svc`, `trusted_proxies`, `clients`, `rules`, `rate_limits`, `basic_auth`, `jwt`, `authorization`, `upgrades`, `abort_on_close`, `timeouts`, `limits`",
    ),
    (
        "respond: hi, respond: ho",
        "q.yaml:1: listeners[0].respond: written twice, first on line 1; remove one",
    ),
    ("mode: htttp, respond: hi", "q.yaml:1: listeners[0].mode: `htttp` is not a mode; did you mean `http`?"),
    ("mode: 3, respond: hi", "q.yaml:1: listeners[0].mode: `3` is not a mode; use http or tcp"),
    ("mode: [http], respond: hi", "q.yaml:1: listeners[0].mode: found a list, expected a single value"),
    (
        "mode: , respond: hi",
        "q.yaml:1: listeners[0].mode: has no value; remove the key, or give it a single value",
    ),
    ("", "q.yaml:1: listeners[0]: no destination for connections; add `upstream`, `respond` or `routes`"),
    ("upstream: web", "q.yaml:1: listeners[0].upstream: there is no upstream `web`; add it to `upstreams`"),
    (
        "upstream: web, respond: hi",
        "q.yaml:1: listeners[0].respond: `upstream` is given too, and a request goes to one of them; remove one\nq.yaml:1: listeners[0].upstream: there is no upstream `web`; add it to `upstreams`",
    ),
    ("routes: []", "q.yaml:1: listeners[0].routes: the list is empty; give it at least one item"),
    ("routes: hi", "q.yaml:1: listeners[0].routes: found `hi`, expected a list, with `- ` before every item"),
    (
        "respond: hi, proxy_protocol: v1",
        "q.yaml:1: listeners[0].proxy_protocol: `v1` is not a way to receive the PROXY protocol; use off or required",
    ),
    ("respond: hi, http3: h3", "q.yaml:1: listeners[0].http3: `h3` is not a switch; use on or off"),
    (
        "respond: hi, alt_svc: off",
        "q.yaml:1: listeners[0].alt_svc: HTTP/3 is off; add `http3: on`, or remove this",
    ),
    (
        "respond: hi, http3: on, alt_svc: clear",
        "q.yaml:1: listeners[0].alt_svc: `clear` is not an `Alt-Svc` value; write it as in `h3=\":443\"; ma=86400`, or `off`",
    ),
    (
        "respond: hi, trusted_proxies: [10.0.0.1/8]",
        "q.yaml:1: listeners[0].trusted_proxies[0]: `10.0.0.1/8` has bits set beyond its prefix; write 10.0.0.0/8, or a longer prefix",
    ),
    (
        "respond: hi, trusted_proxies: [balancer]",
        "q.yaml:1: listeners[0].trusted_proxies[0]: `balancer` is not a network; write an IP address, or one with a prefix length: 10.0.0.0/8, 2001:db8::/32",
    ),
    (
        "respond: hi, response_headers: [{set: X, append: Y, value: z}]",
        "q.yaml:1: listeners[0].response_headers[0].append: a change has one action; write two changes",
    ),
    (
        "respond: hi, response_headers: [{set: X}, {remove: X, value: z}, {value: z}]",
        "q.yaml:1: listeners[0].response_headers[0]: `value` is missing; write the header's value\nq.yaml:1: listeners[0].response_headers[1].value: `remove` takes no value; remove this\nq.yaml:1: listeners[0].response_headers[2]: the change has no action; write `set`, `append` or `remove` with a header's name",
    ),
    (
        "respond: hi, response_headers: [{set: Content-Length, value: 3}]",
        "q.yaml:1: listeners[0].response_headers[0].set: `content-length` controls the connection or the framing; the gateway sets it",
    ),
    (
        "respond: hi, response_headers: [{set: X, value: 'a {client'}, {set: X, value: '{moon}'}]",
        "q.yaml:1: listeners[0].response_headers[0].value: unclosed brace in `a {client`; write `{{` for a literal brace\nq.yaml:1: listeners[0].response_headers[1].value: unknown variable `{moon}`; known are {client}, {client_ip}, {client_certificate_subject}, {client_certificate_uri}, {client_certificate_dns}, {client_certificate_sha256}, {local}, {local_ip}, {protocol}, {scheme}, {server_name}, {tls_version}, {upstream}, {host}, {path}, {query}, {request:NAME} and {response:NAME}; write `{{` for a brace",
    ),
    (
        "mode: tcp, upstream: u, response_headers: [{remove: X}]",
        "q.yaml:1: listeners[0].response_headers: `mode: tcp` has no headers; remove this, or use `mode: http`\nq.yaml:1: listeners[0].upstream: there is no upstream `u`; add it to `upstreams`",
    ),
    (
        "respond: hi, hsts: forever",
        "q.yaml:1: listeners[0].hsts: `forever` is not a duration; write a number and a unit, such as 10ms, 1.5s or 2m",
    ),
    (
        "respond: hi, clients: {deny: []}",
        "q.yaml:1: listeners[0].clients.deny: the list is empty; give it at least one item",
    ),
    (
        "respond: hi, clients: {allow: [localhost]}",
        "q.yaml:1: listeners[0].clients.allow[0]: `localhost` is not a network; write an IP address, or one with a prefix length: 10.0.0.0/8, 2001:db8::/32",
    ),
    (
        "respond: hi, clients: {forbid: [10.0.0.1]}",
        "q.yaml:1: listeners[0].clients.forbid: unknown key; known here are `allow`, `deny`",
    ),
    (
        "respond: hi, paths: {parameters: drop}",
        "q.yaml:1: listeners[0].paths.parameters: `drop` is not an action for such a path; use reject or keep",
    ),
    (
        "mode: tcp, upstream: u, paths: {normalize: off}",
        "q.yaml:1: listeners[0].paths: `mode: tcp` has no paths; remove `paths`, or use `mode: http`\nq.yaml:1: listeners[0].upstream: there is no upstream `u`; add it to `upstreams`",
    ),
    (
        "respond: hi, limits: 5",
        "q.yaml:1: listeners[0].limits: found `5`, expected a mapping with the keys `connections`, `connections_per_client`, `handshakes`, `header`, `headers`, `url`, `body`",
    ),
    (
        "respond: hi, limits: {connections: 0}",
        "q.yaml:1: listeners[0].limits.connections: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "respond: hi, limits: {header: 64k}",
        "q.yaml:1: listeners[0].limits.header: `64k` is not a size; write `64KiB`",
    ),
    (
        "respond: hi, limits: {header: 12}",
        "q.yaml:1: listeners[0].limits.header: browsers' headers take several KiB; write `4KiB` or more",
    ),
    (
        "respond: hi, limits: {header: 1GiB}",
        "q.yaml:1: listeners[0].limits.header: `1GiB` of memory for each connection is too much; write `8MiB` or less",
    ),
    (
        "respond: hi, limits: {headers: 16KiB}",
        "q.yaml:1: listeners[0].limits.headers: `16KiB` is not a whole number of at least 1; write plain digits",
    ),
    (
        "respond: hi, limits: {headers: 20000}",
        "q.yaml:1: listeners[0].limits.headers: no client sends this many headers; write `10000` or less",
    ),
    (
        "respond: hi, limits: {url: 100}",
        "q.yaml:1: listeners[0].limits.url: links of ordinary pages are longer than that; write `256` or more",
    ),
    (
        "respond: hi, limits: {url: 64KiB}",
        "q.yaml:1: listeners[0].limits.url: never reached: a whole header is limited to 64KiB; write less, or a larger `header`",
    ),
    (
        "respond: hi, limits: {body: 10m}",
        "q.yaml:1: listeners[0].limits.body: `10m` is not a size; write `10MiB`",
    ),
    (
        "respond: hi, limits: {body: 0}",
        "q.yaml:1: listeners[0].limits.body: `0` would refuse every body; write `off` for bodies of any size",
    ),
    (
        "mode: tcp, upstream: u, limits: {body: 1MiB}",
        "q.yaml:1: listeners[0].limits.body: `mode: tcp` has no requests; remove this, or use `mode: http`\nq.yaml:1: listeners[0].upstream: there is no upstream `u`; add it to `upstreams`",
    ),
    (
        "respond: hi, limits: {handshakes: 1k}",
        "q.yaml:1: listeners[0].limits.handshakes: `1k` is not a whole number of at least 1; write plain digits",
    ),
    (
        "respond: hi, timeouts: {handshake: 10}",
        "q.yaml:1: listeners[0].timeouts.handshake: `10` has no unit; write `10s` or `10ms`",
    ),
    (
        "respond: hi, timeouts: {header: 0s}",
        "q.yaml:1: listeners[0].timeouts.header: zero would time out immediately; write a longer time",
    ),
    (
        "respond: hi, timeouts: {idle: soon}",
        "q.yaml:1: listeners[0].timeouts.idle: `soon` is not a duration; write a number and a unit, such as 10ms, 1.5s or 2m",
    ),
    (
        "respond: hi, timeouts: {idle: 400d}",
        "q.yaml:1: listeners[0].timeouts.idle: `400d` is longer than a year; write a shorter time",
    ),
    (
        "respond: hi, timeouts: {idle: 5w}",
        "q.yaml:1: listeners[0].timeouts.idle: `5w` has an unknown unit; use us, ms, s, m, h or d",
    ),
    (
        "mode: tcp, respond: hi",
        "q.yaml:1: listeners[0].respond: tcp mode sends no responses of its own; use `upstream`, or `mode: \
         http`",
    ),
    (
        "mode: tcp, routes: [{respond: hi}]",
        "q.yaml:1: listeners[0].routes[0].respond: tcp mode sends no responses of its own; use `upstream`, or `mode: http`",
    ),
];

const ADDRESSES: &[Case] = &[
    (
        "somewhere",
        "q.yaml:1: listeners[0].address: `somewhere` is not an address of this machine; write an IP address and a port: `0.0.0.0:8443`",
    ),
    ("127.0.0.1", "q.yaml:1: listeners[0].address: `127.0.0.1` has no port; write `127.0.0.1:8443`"),
    (
        "'127.0.0.1:99999'",
        "q.yaml:1: listeners[0].address: `127.0.0.1:99999` has no usable port; ports are 0 to 65535",
    ),
    (
        "'example.com:443'",
        "q.yaml:1: listeners[0].address: `example.com:443` is not an address of this machine; write an IP address and a port: `0.0.0.0:8443`",
    ),
    ("'::1'", "q.yaml:1: listeners[0].address: `::1` has no port; write `[::1]:8443`"),
    (
        "[::1]",
        "q.yaml:1: listeners[0].address: found a list, expected a single value; an IPv6 address needs quotes: \"[::]:8443\"",
    ),
    ("{port: 1}", "q.yaml:1: listeners[0].address: found a mapping, expected a single value"),
    (
        "\"-----BEGIN PRIVATE KEY-----\\nMIIsecret\"",
        "q.yaml:1: listeners[0].address: (text of 37 bytes) is not an address of this machine; write an IP address and a port: `0.0.0.0:8443`",
    ),
];

const CERTIFICATES: &[Case] = &[
    ("[]", "q.yaml:1: listeners[0].certificates: the list is empty; give it at least one item"),
    (
        "c.pem",
        "q.yaml:1: listeners[0].certificates: found `c.pem`, expected a list, with `- ` before every item",
    ),
    (
        "[c.pem]",
        "q.yaml:1: listeners[0].certificates[0]: found `c.pem`, expected a mapping with the keys `chain`, `key`, `ocsp`, `acme`, `experimental`",
    ),
    (
        "[{}]",
        "q.yaml:1: listeners[0].certificates[0]: `chain` is missing; add `chain: ...` (path, or PEM text)\nq.yaml:1: listeners[0].certificates[0]: `key` is missing; add `key: ...` (path, PEM text, PKCS#11 URI, or mapping)",
    ),
    (
        "[{chain: c.pem}]",
        "q.yaml:1: listeners[0].certificates[0]: `key` is missing; add `key: ...` (path, PEM text, PKCS#11 URI, or mapping)",
    ),
    (
        "[{chain: c.pem, key: [k.pem]}]",
        "q.yaml:1: listeners[0].certificates[0].key: found a list, expected a single value",
    ),
    (
        "[{chain: '', key: k.pem, ocsp: \"a\\nb\"}]",
        "q.yaml:1: listeners[0].certificates[0].chain: the path is empty; write the path of a file\nq.yaml:1: listeners[0].certificates[0].ocsp: (text of 3 bytes) is not a path; write it on one line",
    ),
    (
        "[{chain: c.pem, key: '-----BEGIN PRIVATE KEY----- MIIsecret'}]",
        "q.yaml:1: listeners[0].certificates[0].key: PEM text must keep its line breaks; begin it with `|` on the line of the key",
    ),
    (
        "[{chain: c.pem, key: k.pem, experimental: on}]",
        "q.yaml:1: listeners[0].certificates[0].experimental: found `on`, expected a mapping with the keys `trust_anchor`",
    ),
    (
        "[{chain: c.pem, key: k.pem, experimental: {trust_anchor: 1..2}}]",
        "q.yaml:1: listeners[0].certificates[0].experimental.trust_anchor: `1..2` is not a trust anchor identifier; write numbers separated by dots, such as `32473.1`, or `properties`",
    ),
];

const ROUTES: &[Case] = &[
    (
        "{host: a.example}",
        "q.yaml:1: listeners[0].routes[0]: no destination for matching requests; add `upstream` or `respond`",
    ),
    (
        "{upstream: web, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].respond: `upstream` is given too, and a request goes to one of them; remove one\nq.yaml:1: listeners[0].routes[0].upstream: there is no upstream `web`; add it to `upstreams`",
    ),
    (
        "{respond: a}, {respond: b}",
        "q.yaml:1: listeners[0].routes[1]: never reached: the route on line 1 matches the same requests; remove one",
    ),
    (
        "{host: a.example, respond: a}, {host: A.EXAMPLE, path: /, respond: b}",
        "q.yaml:1: listeners[0].routes[1]: never reached: the route on line 1 matches the same requests; remove one",
    ),
    (
        "{host: 'http://a.example', respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `http://a.example` is a URL; write the host here and the rest under `path`",
    ),
    (
        "{host: 'a.example:80', respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `a.example:80` has a port; routes match the host alone",
    ),
    (
        "{host: 'a*.example', respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `a*.example` is not a host; `*` can only stand for the whole first label",
    ),
    (
        "{host: a..example, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `a..example` is not a host; write `example.com` or `*.example.com`",
    ),
    (
        "{host: é.example, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `é.example` is not ASCII; write `xn--9ca.example`",
    ),
    (
        "{host: a example, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host: `a example` is not a host: ' ' cannot be in one",
    ),
    (
        "{path: api, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].path: `api` does not begin with a slash; write `/api`",
    ),
    (
        "{path: '/a?b', respond: hi}",
        "q.yaml:1: listeners[0].routes[0].path: `/a?b` has a query, a fragment or a pattern; write a plain path",
    ),
    (
        "{path: /a b, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].path: `/a b` has a character that a URL must percent-encode",
    ),
    (
        "{respond: {status: 99}}",
        "q.yaml:1: listeners[0].routes[0].respond.status: `99` is not the status of a response; use 200 to 599",
    ),
    (
        "{respond: {content_type: \"a\\nb\"}}",
        "q.yaml:1: listeners[0].routes[0].respond.content_type: (text of 3 bytes) cannot be sent in a header",
    ),
    (
        "{respond: {status: 204, body: hi}}",
        "q.yaml:1: listeners[0].routes[0].respond.body: a response with status 204 has no body; remove it",
    ),
    (
        "{respond: {text: hi}}",
        "q.yaml:1: listeners[0].routes[0].respond.text: unknown key; known here are `status`, `content_type`, `body`",
    ),
];
