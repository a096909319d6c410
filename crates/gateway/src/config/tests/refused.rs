//! Every mistake, with the exact words that the user sees.

use super::{listener, mistakes};

/// A text with its mistakes, one a line.
type Case = (&'static str, &'static str);

fn check(cases: &[Case], document: impl Fn(&str) -> String) {
    for (text, messages) in cases {
        assert_eq!(mistakes(&document(text)), *messages, "{text}");
    }
}

#[test]
fn whole_documents() {
    check(DOCUMENTS, str::to_owned);
}

#[test]
fn syntax() {
    check(SYNTAX, str::to_owned);
}

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
fn tls() {
    check(TLS, |text| listener(&format!("respond: hi, tls: {{{text}}}")));
}

#[test]
fn upstreams() {
    check(UPSTREAMS, |text| listener("upstream: web") + "\nupstreams: {web: {" + text + "}}");
}

#[test]
fn references() {
    check(REFERENCES, |text| {
        listener(text) + "\nupstreams: {web: {servers: ['a:1']}, api: {servers: ['a:2']}}"
    });
}

#[test]
fn top_level() {
    check(TOP_LEVEL, |text| listener("respond: hi") + "\n" + text);
}

#[test]
fn all_at_once_and_by_line() {
    assert_eq!(mistakes(MANY), MANY_MISTAKES.join("\n"));
}

/// A small file whose aliases would unfold to millions of values.
#[test]
fn aliases_that_multiply() {
    let mut text = "a0: &a0 x\n".to_owned();
    for level in 1..=8 {
        let aliases = format!("*a{}, ", level - 1).repeat(10);
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert_eq!(
        mistakes(&text),
        "q.yaml:7: the document is too large: aliases multiply it, or it is no configuration"
    );
}

#[test]
fn one_address_for_two() {
    let two = |one: &str, other: &str| {
        let listener = |address| {
            format!("- {{address: '{address}', certificates: [{{chain: c, key: k}}], respond: hi}}\n")
        };
        format!("listeners:\n{}{}", listener(one), listener(other))
    };
    for (one, other, message) in [
        ("127.0.0.1:1", "127.0.0.1:1", "the listener on line 2 already has 127.0.0.1:1"),
        ("0.0.0.0:1", ":1", "the listener on line 2 already has 0.0.0.0:1"),
        ("127.0.0.1:1", "127.0.0.1:9901", "`admin` already has 127.0.0.1:9901"),
    ] {
        let expected = format!("q.yaml:3: listeners[1].address: {message}; give each its own");
        assert_eq!(mistakes(&two(one, other)), expected);
    }
}

const DOCUMENTS: &[Case] = &[
    ("", "q.yaml:1: the file is empty; it needs at least `listeners`"),
    ("# nothing\n", "q.yaml:1: the file is empty; it needs at least `listeners`"),
    ("---\n~\n", "q.yaml:2: the file is empty; it needs at least `listeners`"),
    (
        "just text",
        "q.yaml:1: found `just text`, expected a mapping with the keys `listeners`, `upstreams`, `engine`, `resumption`, `admin`, `threads`, `drain_timeout`, `access_log`",
    ),
    (
        "- a",
        "q.yaml:1: found a list, expected a mapping with the keys `listeners`, `upstreams`, `engine`, `resumption`, `admin`, `threads`, `drain_timeout`, `access_log`",
    ),
    ("admin: off", "q.yaml:1: `listeners` is missing; add `listeners: ...` (list of listeners)"),
    ("listeners: []", "q.yaml:1: listeners: the list is empty; give it at least one item"),
    (
        "listeners:\nadmin: off",
        "q.yaml:1: listeners: has no value; remove the key, or give it a list, with `- ` before every item",
    ),
    (
        "listeners: {address: 1}",
        "q.yaml:1: listeners: found a mapping, expected a list, with `- ` before every item",
    ),
];

const SYNTAX: &[Case] = &[
    ("a: [b", "q.yaml:2: not valid YAML: while parsing a flow sequence, expected ',' or ']'"),
    ("a: 'x", "q.yaml:1: not valid YAML: while scanning a quoted scalar, found unexpected end of stream"),
    (
        "a: b: c",
        "q.yaml:1: not valid YAML: mapping values are not allowed in this context; check the indentation, and quote values that contain `: `",
    ),
    (
        "a: @x",
        "q.yaml:1: not valid YAML: unexpected character: `@'; quote values that begin with a special character",
    ),
    (
        "listeners:\n\t- a: 1",
        "q.yaml:2: not valid YAML: tabs disallowed within this context (block indentation); indent with spaces, not tabs",
    ),
    (
        "listeners:\n  - address: [::]:8443",
        "q.yaml:2: not valid YAML: while parsing a block mapping, did not find expected key; an IPv6 address needs quotes: \"[::]:8443\"",
    ),
    (
        "a: 1\n---\nb: 2",
        "q.yaml:2: a second document begins here; a configuration is one document, remove the `---`",
    ),
    ("{[a]: 1}", "q.yaml:1: a key is a list or a mapping; keys are plain words"),
    ("a: !secret x", "q.yaml:1: the tag `!secret` has no meaning here; remove it"),
    ("a: &x [*x]", "q.yaml:1: this alias stands inside the value that it refers to; write the value out"),
    ("a: *nope", "q.yaml:1: not valid YAML: while parsing node, found unknown anchor"),
];

const LISTENERS: &[Case] = &[
    ("mod: http, respond: hi", "q.yaml:1: listeners[0].mod: unknown key; did you mean `mode`?"),
    (
        "poll_delay: 1ms, respond: hi",
        "q.yaml:1: listeners[0].poll_delay: unknown key here; it belongs in `engine`",
    ),
    (
        "quux: 1, respond: hi",
        "q.yaml:1: listeners[0].quux: unknown key; known here are `address`, `mode`, `certificates`, `tls`, `routes`, `upstream`, `respond`, `proxy_protocol`, `timeouts`, `limits`",
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
    ("", "q.yaml:1: listeners[0]: nothing says where connections go; add `upstream`, `respond` or `routes`"),
    ("upstream: web", "q.yaml:1: listeners[0].upstream: no upstream is called `web`; add it to `upstreams`"),
    (
        "upstream: web, respond: hi",
        "q.yaml:1: listeners[0].respond: `upstream` is given too, and a request goes to one of them; remove one\nq.yaml:1: listeners[0].upstream: no upstream is called `web`; add it to `upstreams`",
    ),
    ("routes: []", "q.yaml:1: listeners[0].routes: the list is empty; give it at least one item"),
    ("routes: hi", "q.yaml:1: listeners[0].routes: found `hi`, expected a list, with `- ` before every item"),
    (
        "respond: hi, proxy_protocol: v1",
        "q.yaml:1: listeners[0].proxy_protocol: `v1` is not a way to receive the PROXY protocol; use off or required",
    ),
    (
        "respond: hi, limits: 5",
        "q.yaml:1: listeners[0].limits: found `5`, expected a mapping with the keys `connections`, `handshakes`",
    ),
    (
        "respond: hi, limits: {connections: 0}",
        "q.yaml:1: listeners[0].limits.connections: `0` is not a whole number of at least 1; write plain digits",
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
        "q.yaml:1: listeners[0].timeouts.header: zero would end everything at once; write a longer time",
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
        "q.yaml:1: listeners[0].respond: tcp mode has no answers of its own; use `upstream`, or `mode: http`",
    ),
    (
        "mode: tcp, routes: [{respond: hi}]",
        "q.yaml:1: listeners[0].routes[0].respond: tcp mode has no answers of its own; use `upstream`, or `mode: http`",
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
        "q.yaml:1: listeners[0].certificates[0]: found `c.pem`, expected a mapping with the keys `chain`, `key`, `ocsp`",
    ),
    (
        "[{}]",
        "q.yaml:1: listeners[0].certificates[0]: `chain` is missing; add `chain: ...` (path, or PEM text)\nq.yaml:1: listeners[0].certificates[0]: `key` is missing; add `key: ...` (path, or PEM text)",
    ),
    (
        "[{chain: c.pem}]",
        "q.yaml:1: listeners[0].certificates[0]: `key` is missing; add `key: ...` (path, or PEM text)",
    ),
    (
        "[{chain: c.pem, key: [k.pem]}]",
        "q.yaml:1: listeners[0].certificates[0].key: found a list, expected a single value",
    ),
    (
        "[{chain: c.pem, key: '-----BEGIN PRIVATE KEY----- MIIsecret'}]",
        "q.yaml:1: listeners[0].certificates[0].key: PEM text must keep its lines; begin it with `|` on the line of the key",
    ),
];

const ROUTES: &[Case] = &[
    (
        "{host: a.example}",
        "q.yaml:1: listeners[0].routes[0]: nothing says where matching requests go; add `upstream` or `respond`",
    ),
    (
        "{upstream: web, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].respond: `upstream` is given too, and a request goes to one of them; remove one\nq.yaml:1: listeners[0].routes[0].upstream: no upstream is called `web`; add it to `upstreams`",
    ),
    (
        "{respond: a}, {respond: b}",
        "q.yaml:1: listeners[0].routes[1]: never reached: the route on line 1 takes the same requests; remove one",
    ),
    (
        "{host: a.example, respond: a}, {host: A.EXAMPLE, path: /, respond: b}",
        "q.yaml:1: listeners[0].routes[1]: never reached: the route on line 1 takes the same requests; remove one",
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
        "q.yaml:1: listeners[0].routes[0].host: `é.example` is not ASCII; write the host in its `xn--` form",
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
        "q.yaml:1: listeners[0].routes[0].respond.body: an answer with status 204 has no body; remove it",
    ),
    (
        "{respond: {text: hi}}",
        "q.yaml:1: listeners[0].routes[0].respond.text: unknown key; known here are `status`, `content_type`, `body`",
    ),
];

const TLS: &[Case] = &[
    ("min: 1.4", "q.yaml:1: listeners[0].tls.min: `1.4` is not a TLS version; use 1.0, 1.1, 1.2 or 1.3"),
    (
        "max: TLSv1.4",
        "q.yaml:1: listeners[0].tls.max: `TLSv1.4` is not a TLS version; use 1.0, 1.1, 1.2 or 1.3",
    ),
    (
        "min: 1.3, max: 1.2",
        "q.yaml:1: listeners[0].tls.max: no version is left from min 1.3 to max 1.2; lower `min` or raise `max`",
    ),
    (
        "max: 1.1",
        "q.yaml:1: listeners[0].tls.max: no version is left from min 1.2 to max 1.1; lower `min` or raise `max`",
    ),
    (
        "min: 1.3, static_rsa: on",
        "q.yaml:1: listeners[0].tls.static_rsa: TLS 1.3 has no RSA key exchange; set `min: 1.2`, or remove this",
    ),
    ("static_rsa: maybe", "q.yaml:1: listeners[0].tls.static_rsa: `maybe` is not a switch; use on or off"),
    ("groups: []", "q.yaml:1: listeners[0].tls.groups: the list is empty; give it at least one item"),
    (
        "groups: [X448]",
        "q.yaml:1: listeners[0].tls.groups[0]: `X448` is not a key-exchange group; use X25519MLKEM768, X25519, P-256, P-384 or P-521",
    ),
    (
        "groups: [X25519MLKEM1024]",
        "q.yaml:1: listeners[0].tls.groups[0]: `X25519MLKEM1024` is not a key-exchange group; did you mean `X25519MLKEM768`?",
    ),
    (
        "groups: [X25519, x25519]",
        "q.yaml:1: listeners[0].tls.groups[1]: `X25519` is listed twice; remove one",
    ),
    (
        "groups: [X25519MLKEM768], max: 1.2",
        "q.yaml:1: listeners[0].tls.groups: X25519MLKEM768 needs TLS 1.3, and max is below; add `X25519`",
    ),
    (
        "alpn: [h3]",
        "q.yaml:1: listeners[0].tls.alpn[0]: an http listener speaks `h2` and `http/1.1`; use one of them, or `mode: tcp`",
    ),
    ("alpn: [h2, h2]", "q.yaml:1: listeners[0].tls.alpn[1]: this protocol is listed twice; remove one"),
    ("alpn: ['']", "q.yaml:1: listeners[0].tls.alpn[0]: an ALPN protocol has 1 to 255 bytes"),
    (
        "client_auth: required",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify clients with; write `client_auth: {mode: required, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {mode: required}",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify clients with; write `client_auth: {mode: required, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {mode: optional}",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify clients with; write `client_auth: {mode: optional, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {ca: x}",
        "q.yaml:1: listeners[0].tls.client_auth: `mode` is missing; add `mode: ...` (`off`, `optional` or `required`)",
    ),
    (
        "client_auth: {mode: sometimes, ca: x}",
        "q.yaml:1: listeners[0].tls.client_auth.mode: `sometimes` is not a mode of client authentication; use off, optional or required",
    ),
];

const UPSTREAMS: &[Case] = &[
    (
        "",
        "q.yaml:2: upstreams.web: `servers` is missing; add `servers: ...` (list of `host:port` or mappings)",
    ),
    ("servers: []", "q.yaml:2: upstreams.web.servers: the list is empty; give it at least one item"),
    ("servers: [a]", "q.yaml:2: upstreams.web.servers[0]: `a` has no port; write `host:port`"),
    (
        "servers: ['http://a:1']",
        "q.yaml:2: upstreams.web.servers[0]: `http://a:1` is a URL; write `host:port`",
    ),
    (
        "servers: ['https://a']",
        "q.yaml:2: upstreams.web.servers[0]: `https://a` is a URL; write `host:port` and set `tls: on`",
    ),
    (
        "servers: ['::1']",
        "q.yaml:2: upstreams.web.servers[0]: `::1` has no port, and an IPv6 address needs brackets; write `[::1]:80`",
    ),
    (
        "servers: ['a:0']",
        "q.yaml:2: upstreams.web.servers[0]: `a:0` has no usable port; ports are 1 to 65535",
    ),
    ("servers: [':80']", "q.yaml:2: upstreams.web.servers[0]: `:80` names no host; write `host:port`"),
    (
        "servers: [{weight: 1}]",
        "q.yaml:2: upstreams.web.servers[0]: `address` is missing; add `address: ...` (`host:port`)",
    ),
    (
        "servers: [{address: 'a:1', weight: 0}]",
        "q.yaml:2: upstreams.web.servers[0].weight: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "servers: ['a:1', {address: 'a:1', weight: 2}]",
        "q.yaml:2: upstreams.web.servers[1]: the server of line 2 again; to give it a larger share, set its `weight`",
    ),
    (
        "servers: ['a:1'], balance: rond_robin",
        "q.yaml:2: upstreams.web.balance: `rond_robin` is not a way to choose a server; did you mean `round_robin`?",
    ),
    (
        "servers: ['a:1'], protocol: http3",
        "q.yaml:2: upstreams.web.protocol: `http3` is not a protocol; did you mean `http1`?",
    ),
    (
        "servers: ['a:1'], protocol: spdy",
        "q.yaml:2: upstreams.web.protocol: `spdy` is not a protocol; use auto, http1 or http2",
    ),
    (
        "servers: ['a:1'], proxy_protocol: on",
        "q.yaml:2: upstreams.web.proxy_protocol: `on` is not a version of the PROXY protocol; use off, v1 or v2",
    ),
    (
        "servers: ['a:1'], retries: -1",
        "q.yaml:2: upstreams.web.retries: `-1` is not a whole number; write plain digits",
    ),
    (
        "servers: ['a:1'], pool: 0",
        "q.yaml:2: upstreams.web.pool: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "servers: ['a:1'], timeouts: {connect: 1}",
        "q.yaml:2: upstreams.web.timeouts.connect: `1` has no unit; write `1s` or `1ms`",
    ),
    (
        "servers: ['a:1'], health: maybe",
        "q.yaml:2: upstreams.web.health: `maybe` is not a switch; use on or off",
    ),
    (
        "servers: ['a:1'], health: {path: healthz}",
        "q.yaml:2: upstreams.web.health.path: `healthz` does not begin with a slash; write `/healthz`",
    ),
    (
        "servers: ['a:1'], health: {interval: 0s}",
        "q.yaml:2: upstreams.web.health.interval: zero would end everything at once; write a longer time",
    ),
    (
        "servers: ['a:1'], tls: {server_name: '*.example'}",
        "q.yaml:2: upstreams.web.tls.server_name: `*.example` is a pattern; write one host",
    ),
    (
        "servers: ['a:1'], tls: {ca: x, verify: off}",
        "q.yaml:2: upstreams.web.tls.ca: `verify: off` means that no CA is looked at; remove one of them",
    ),
];

const REFERENCES: &[Case] = &[
    ("upstream: wbe", "q.yaml:1: listeners[0].upstream: no upstream is called `wbe`; did you mean `web`?"),
    (
        "upstream: something",
        "q.yaml:1: listeners[0].upstream: no upstream is called `something`; known are web, api",
    ),
    (
        "upstream: web, respond: hi",
        "q.yaml:1: listeners[0].respond: `upstream` is given too, and a request goes to one of them; remove one",
    ),
    (
        "routes: [{host: a.example, upstream: web, respond: hi}]",
        "q.yaml:1: listeners[0].routes[0].respond: `upstream` is given too, and a request goes to one of them; remove one",
    ),
    (
        "routes: [{upstream: web}], upstream: api",
        "q.yaml:1: listeners[0].upstream: never reached: the route on line 1 takes the same requests; remove one",
    ),
    (
        "mode: tcp, routes: [{host: a.example, upstream: web}]",
        "q.yaml:1: listeners[0].routes[0].host: tcp mode sees no `host`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{path: /a, upstream: web}]",
        "q.yaml:1: listeners[0].routes[0].path: tcp mode sees no `path`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{upstream: web}], upstream: api",
        "q.yaml:1: listeners[0].upstream: a listener in tcp mode has one target, and this is another; keep a single `upstream`",
    ),
];

const TOP_LEVEL: &[Case] = &[
    ("listener: 1", "q.yaml:2: listener: unknown key; did you mean `listeners`?"),
    (
        "<<: {a: 1}",
        "q.yaml:2: <<: unknown key; known here are `listeners`, `upstreams`, `engine`, `resumption`, `admin`, `threads`, `drain_timeout`, `access_log`",
    ),
    ("threads: 1\nthreads: 2", "q.yaml:3: threads: written twice, first on line 2; remove one"),
    (
        "upstreams: []",
        "q.yaml:2: upstreams: found a list, expected a mapping, with `name:` before every entry",
    ),
    (
        "upstreams: {a b: {servers: ['a:1']}}",
        "q.yaml:2: upstreams.a b: `a b` cannot be a name; use letters, digits, `_`, `-` and `.`",
    ),
    (
        "engine: off",
        "q.yaml:2: engine: found `off`, expected a mapping with the keys `backend`, `poll_delay`, `batch`, `threads`, `queue`",
    ),
    ("engine: {backend: gpu}", "q.yaml:2: engine.backend: `gpu` is not a backend; use auto or scalar"),
    ("engine: {poll_delay: 5}", "q.yaml:2: engine.poll_delay: `5` has no unit; write `5s` or `5ms`"),
    (
        "engine: {batch: 0}",
        "q.yaml:2: engine.batch: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "engine: {threads: many}",
        "q.yaml:2: engine.threads: `many` is not a whole number of at least 1; write plain digits, or `auto` for one for each CPU",
    ),
    (
        "engine: {queue: x}",
        "q.yaml:2: engine.queue: `x` is not a whole number of at least 1; write plain digits",
    ),
    ("resumption: maybe", "q.yaml:2: resumption: `maybe` is not a switch; use on or off"),
    (
        "resumption: {lifetime: 8d}",
        "q.yaml:2: resumption.lifetime: TLS lets sessions live for 7d at most; write less",
    ),
    (
        "resumption: {cache_size: 0}",
        "q.yaml:2: resumption.cache_size: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "admin: on",
        "q.yaml:2: admin: `on` is not an address of this machine; write an IP address and a port: `0.0.0.0:8443`",
    ),
    (
        "admin: {adress: 9901}",
        "q.yaml:2: admin.adress: unknown key; did you mean `address`?\nq.yaml:2: admin: `address` is missing; add `address: ...` (address and port)",
    ),
    (
        "admin: '127.0.0.1:8443'",
        "q.yaml:1: listeners[0].address: `admin` already has 127.0.0.1:8443; give each its own",
    ),
    (
        "threads: 0",
        "q.yaml:2: threads: `0` is not a whole number of at least 1; write plain digits, or `auto` for one for each CPU",
    ),
    ("drain_timeout: 1", "q.yaml:2: drain_timeout: `1` has no unit; write `1s` or `1ms`"),
    ("access_log: ''", "q.yaml:2: access_log: the path is empty; write off, stdout or the path of a file"),
    (
        "access_log: stderr",
        "q.yaml:2: access_log: `stderr` carries the gateway's own log; write stdout or the path of a file",
    ),
];

const MANY: &str = "\
# comment
listeners:
  - address: 0.0.0.0:8443
    certificates:
      - chain: chain.pem
        key: key.pem
    certificats: []
    tls:
      min: 1.5
      static_rsa: sure
    routes:
      - path: /api
        upstream: ap
  - mode: tcp
upstreams:
  app:
    servers:
      - app:8080
      - app
    pool: lots
engine:
  queue: 0
treads: 4
";

const MANY_MISTAKES: &[&str] = &[
    "q.yaml:7: listeners[0].certificats: unknown key; did you mean `certificates`?",
    "q.yaml:9: listeners[0].tls.min: `1.5` is not a TLS version; use 1.0, 1.1, 1.2 or 1.3",
    "q.yaml:10: listeners[0].tls.static_rsa: `sure` is not a switch; use on or off",
    "q.yaml:13: listeners[0].routes[0].upstream: no upstream is called `ap`; did you mean `app`?",
    "q.yaml:14: listeners[1]: `address` is missing; add `address: ...` (address and port)",
    "q.yaml:14: listeners[1]: `certificates` is missing; add `certificates: ...` (list of certificates)",
    "q.yaml:14: listeners[1]: nothing says where connections go; add `upstream`, `respond` or `routes`",
    "q.yaml:19: upstreams.app.servers[1]: `app` has no port; write `host:port`",
    "q.yaml:20: upstreams.app.pool: `lots` is not a whole number of at least 1; write plain digits",
    "q.yaml:22: engine.queue: `0` is not a whole number of at least 1; write plain digits",
    "q.yaml:23: treads: unknown key; did you mean `threads`?",
];
