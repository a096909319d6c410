//! Mistakes in upstreams and in references to them, with the exact messages that the user sees.

use super::{Case, check, listener};

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

const UPSTREAMS: &[Case] = &[
    (
        "",
        "q.yaml:2: upstreams.web: `servers` is missing; add `servers: ...` (list of `host:port`, `srv:name` or mappings)",
    ),
    ("servers: []", "q.yaml:2: upstreams.web.servers: the list is empty; give it at least one item"),
    (
        "servers: ['a:1'], dns_refresh: often",
        "q.yaml:2: upstreams.web.dns_refresh: `often` is neither `ttl` nor `off` nor a duration; write one of them, such as `30s`",
    ),
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
    ("servers: [':80']", "q.yaml:2: upstreams.web.servers[0]: `:80` has no host; write `host:port`"),
    (
        "servers: [{weight: 1}]",
        "q.yaml:2: upstreams.web.servers[0]: `address` is missing; add `address: ...` (`host:port`, `unix:/path` or `srv:name`)",
    ),
    (
        "servers: [{address: 'a:1', weight: 0}]",
        "q.yaml:2: upstreams.web.servers[0].weight: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "servers: ['a:1', {address: 'a:1', weight: 2}]",
        "q.yaml:2: upstreams.web.servers[1]: already listed on line 2; to give it a larger share, set its `weight`",
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
        "q.yaml:2: upstreams.web.protocol: `spdy` is not a protocol; use auto, http1, http2 or of_request",
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
        "servers: ['a:1'], health: {method: HEAD}",
        "q.yaml:2: upstreams.web.health.method: the checks send no request; add `path`, such as `/healthz`",
    ),
    (
        "servers: ['a:1'], health: {path: /, method: CONNECT}",
        "q.yaml:2: upstreams.web.health.method: `CONNECT` opens a tunnel, which is not a check; write `GET` or `HEAD`",
    ),
    (
        "servers: ['a:1'], health: {path: /, method: HEAD, body: ok}",
        "q.yaml:2: upstreams.web.health.method: responses to `HEAD` have no body, which `body` needs; remove one of them",
    ),
    (
        "servers: ['a:1'], health: {path: /, host: 'a b'}",
        "q.yaml:2: upstreams.web.health.host: `a b` is not a host; write `app.internal` or `app.internal:8080`",
    ),
    (
        "servers: ['a:1'], health: {path: /, statuses: [299-200]}",
        "q.yaml:2: upstreams.web.health.statuses[0]: `299-200` is an empty range; write the lower status first",
    ),
    (
        "servers: ['a:1'], health: {path: /, statuses: [2xx]}",
        "q.yaml:2: upstreams.web.health.statuses[0]: `2xx` is not the status of a response; use 200 to 599",
    ),
    (
        "servers: ['a:1'], health: {path: /, body: a, body_regex: b}",
        "q.yaml:2: upstreams.web.health.body_regex: `body` is given too; remove one of them",
    ),
    (
        "servers: ['a:1'], protocol: http2, health: {grpc: on, body: a}",
        "q.yaml:2: upstreams.web.health.body: gRPC checks have their own request; remove this, or use `path`",
    ),
    (
        "servers: ['a:1'], health: {path: /, server_name: b.example}",
        "q.yaml:2: upstreams.web.health.server_name: this upstream does not use TLS; add `tls` to the upstream, or remove this",
    ),
    (
        "servers: ['a:1'], balance: client_ip, slow_start: 10s",
        "q.yaml:2: upstreams.web.slow_start: `balance: client_ip` keeps clients on their servers, whose shares cannot grow; remove this, or use `round_robin`, `random` or `least_request`",
    ),
    (
        "servers: [{address: 'a:1', priority: 128}]",
        "q.yaml:2: upstreams.web.servers[0].priority: `128` is not a priority; write `0`, or a number up to `127` for backups",
    ),
    (
        "servers: [{address: 'a:1', backup: on}]",
        "q.yaml:2: upstreams.web.servers[0].backup: unknown key; write `priority: 1` for a server",
    ),
    (
        "servers: ['srv:_http._tcp']",
        "q.yaml:2: upstreams.web.servers[0]: `_http._tcp` is not the name of SRV records; write `srv:_http._tcp.example.com`, or the like",
    ),
    (
        "servers: [{address: 'srv:_http._tcp.a.example', priority: 1}]",
        "q.yaml:2: upstreams.web.servers[0].priority: the SRV records give the priorities and weights; remove this",
    ),
    (
        "servers: ['srv:_http._tcp.a.example'], tls: on",
        "q.yaml:2: upstreams.web.tls: a certificate for any name in the SRV records would be accepted, and DNS does not protect them; add `server_name`, the name in the servers' certificates",
    ),
    (
        "servers: ['a:1'], health: {grpc: on}",
        "q.yaml:2: upstreams.web.health.grpc: gRPC needs HTTP/2, and this upstream uses HTTP/1.1; add `protocol: http2` to the upstream",
    ),
    (
        "servers: ['a:1'], protocol: http1, tls: on, health: {grpc: my.Service}",
        "q.yaml:2: upstreams.web.health.grpc: gRPC needs HTTP/2, and this upstream uses HTTP/1.1; add `protocol: http2` to the upstream",
    ),
    (
        "servers: ['a:1'], protocol: http2, health: {path: /, grpc: on}",
        "q.yaml:2: upstreams.web.health.grpc: `path` is given too, and a check sends one kind of request; remove one of them",
    ),
    (
        "servers: ['a:1'], health: {interval: 0s}",
        "q.yaml:2: upstreams.web.health.interval: zero would time out immediately; write a longer time",
    ),
    (
        "servers: ['a:1'], outlier_detection: {most: 101}",
        "q.yaml:2: upstreams.web.outlier_detection.most: `101` is not a percentage; write a whole number from 1 to 100",
    ),
    (
        "servers: ['a:1'], outlier_detection: {errors: none}",
        "q.yaml:2: upstreams.web.outlier_detection.errors: `none` is not a whole number of at least 1; write plain digits",
    ),
    (
        "servers: ['a:1'], limits: {requests: 0}",
        "q.yaml:2: upstreams.web.limits.requests: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "servers: ['a:1'], tls: {server_name: '*.example'}",
        "q.yaml:2: upstreams.web.tls.server_name: `*.example` is a pattern; write one host",
    ),
    (
        "servers: ['a:1'], tls: {min: 1.3, max: 1.2}",
        "q.yaml:2: upstreams.web.tls.max: `min` 1.3 is above `max` 1.2; lower `min` or raise `max`",
    ),
    (
        "servers: ['a:1'], tls: {cipher_suites: [ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA]}",
        "q.yaml:2: upstreams.web.tls.cipher_suites[0]: `ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA` is not one suite; write a list with one suite for each item",
    ),
    (
        "servers: ['a:1'], tls: {groups: [X448]}",
        "q.yaml:2: upstreams.web.tls.groups[0]: `X448` is not a key-exchange group; use X25519MLKEM768, X25519, P-256, P-384 or P-521",
    ),
    (
        "servers: ['a:1'], tls: {ca: x, verify: off}",
        "q.yaml:2: upstreams.web.tls.ca: `verify: off` means that no CA is used; remove one of them",
    ),
];

const REFERENCES: &[Case] = &[
    ("upstream: wbe", "q.yaml:1: listeners[0].upstream: there is no upstream `wbe`; did you mean `web`?"),
    (
        "upstream: something",
        "q.yaml:1: listeners[0].upstream: there is no upstream `something`; known are web, api",
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
        "q.yaml:1: listeners[0].upstream: never reached: the route on line 1 matches the same requests; remove one",
    ),
    (
        "mode: tcp, routes: [{host: a.example, upstream: web}]",
        "q.yaml:1: listeners[0].routes[0].host: tcp mode has no `host`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{path: /a, upstream: web}]",
        "q.yaml:1: listeners[0].routes[0].path: tcp mode has no `path`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{upstream: web, mirror: [{upstream: api}]}]",
        "q.yaml:1: listeners[0].routes[0].mirror: tcp mode has no `mirror`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{upstream: web, sticky: [client_ip]}]",
        "q.yaml:1: listeners[0].routes[0].sticky: tcp mode has no `sticky`; remove it, or use `mode: http`",
    ),
    (
        "mode: tcp, routes: [{upstream: web}], upstream: api",
        "q.yaml:1: listeners[0].upstream: a listener in tcp mode has one target, and this is a second one; keep a single `upstream`",
    ),
];
