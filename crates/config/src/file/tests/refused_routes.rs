//! Mistakes in conditions and actions of routes, with the exact messages that the user sees.

use super::{Case, check, listener};
use crate::file::parse;

#[test]
fn conditions_and_actions() {
    check(ROUTES, |text| listener(&format!("routes: [{text}]")));
}

#[test]
fn rate_limits() {
    check(RATE_LIMITS, |text| listener(&format!("respond: hi, rate_limits: {text}")));
    check(RATE_LIMITS_OF_ROUTES, |text| listener(&format!("routes: [{text}]")));
    let tcp = "mode: tcp, upstream: u, rate_limits: [{rate: 1/s}]";
    let document = format!("{}\nupstreams: {{u: {{servers: ['a:1']}}}}", listener(tcp));
    let errors = parse(&document, "q.yaml").expect_err("it has no requests").to_string();
    let expected =
        "q.yaml:1: listeners[0].rate_limits: `mode: tcp` has no requests; remove this, or use `mode: http`";
    assert_eq!(errors, expected);
}

#[test]
fn basic_auth() {
    check(BASIC_AUTH, |text| listener(&format!("respond: hi, basic_auth: {text}")));
    let tcp = "mode: tcp, upstream: u, basic_auth: users";
    let document = format!("{}\nupstreams: {{u: {{servers: ['a:1']}}}}", listener(tcp));
    let errors = parse(&document, "q.yaml").expect_err("it has no requests").to_string();
    let expected =
        "q.yaml:1: listeners[0].basic_auth: `mode: tcp` has no requests; remove this, or use `mode: http`";
    assert_eq!(errors, expected);
}

#[test]
fn plain_text_has_no_certificates() {
    let errors = parse(&listener("tls: off, respond: hi"), "q.yaml").expect_err("it has").to_string();
    let expected =
        "q.yaml:1: listeners[0].certificates: `tls: off` does not use certificates; remove one of them";
    assert_eq!(errors, expected);
}

#[test]
fn listeners_that_share_a_socket_agree_on_it() {
    let text = "listeners:
  - {address: 1443, tls: off, respond: a, match: {transport: plain}}
  - {address: 1443, tls: off, respond: b, proxy_protocol: required}
";
    let errors = parse(text, "q.yaml").expect_err("they do not").to_string();
    let expected = "q.yaml:3: listeners[1].proxy_protocol: listeners that share an address must agree on `proxy_protocol`";
    assert_eq!(errors, expected);
}

const BASIC_AUTH: &[Case] = &[
    (
        "{realm: x}",
        "q.yaml:1: listeners[0].basic_auth: `users` is missing; add `users: ...` (path, or the lines themselves)",
    ),
    (
        "[users]",
        "q.yaml:1: listeners[0].basic_auth: found a list, expected a mapping with the keys `users`, `realm`, `authorization`, `user_header`, `guesses`",
    ),
    (
        "{users: u, realm: ''}",
        "q.yaml:1: listeners[0].basic_auth.realm: a realm is one line of text; write the text that browsers show",
    ),
    (
        "{users: u, authorization: keep}",
        "q.yaml:1: listeners[0].basic_auth.authorization: the header is forwarded or removed; write `forward` or `remove`",
    ),
    (
        "{users: u, user_header: 'a b'}",
        "q.yaml:1: listeners[0].basic_auth.user_header: `a b` is not the name of a header",
    ),
    (
        "{users: u, guesses: 5}",
        "q.yaml:1: listeners[0].basic_auth.guesses: `5` is not a rate; write a number of requests and a time, such as 10/s, 600/m or 5/10s",
    ),
];

const RATE_LIMITS: &[Case] = &[
    ("[]", "q.yaml:1: listeners[0].rate_limits: the list is empty; give it at least one item"),
    (
        "[{burst: 5}]",
        "q.yaml:1: listeners[0].rate_limits[0]: `rate` is missing; add `rate: ...` (requests and time)",
    ),
    (
        "[{rate: 10}]",
        "q.yaml:1: listeners[0].rate_limits[0].rate: `10` is not a rate; write a number of requests and a time, such as 10/s, 600/m or 5/10s",
    ),
    (
        "[{rate: 0/s}]",
        "q.yaml:1: listeners[0].rate_limits[0].rate: `0/s` is not a rate; write a number of requests and a time, such as 10/s, 600/m or 5/10s",
    ),
    (
        "[{rate: 1/s, burst: 0}]",
        "q.yaml:1: listeners[0].rate_limits[0].burst: `0` is not a whole number of at least 1; write plain digits",
    ),
    (
        "[{rate: 1/d, burst: 400}]",
        "q.yaml:1: listeners[0].rate_limits[0]: capacity for one request would return in less than a nanosecond, or for all of them in more than a year; write a lower `rate`, or a lower `burst`",
    ),
    (
        "[{rate: 2/1ns}]",
        "q.yaml:1: listeners[0].rate_limits[0]: capacity for one request would return in less than a nanosecond, or for all of them in more than a year; write a lower `rate`, or a lower `burst`",
    ),
    (
        "[{rate: 1/s, by: moon}]",
        "q.yaml:1: listeners[0].rate_limits[0].by: requests cannot be limited by `moon`; write `client`, `all`, or `header` and the name of a header",
    ),
    (
        "[{rate: 1/s, by: header a:b}]",
        "q.yaml:1: listeners[0].rate_limits[0].by: `a:b` is not the name of a header",
    ),
    (
        "[{rate: 1/s, ipv4_prefix: 33}]",
        "q.yaml:1: listeners[0].rate_limits[0].ipv4_prefix: `33` is not a prefix length; use 1 to 32",
    ),
    (
        "[{rate: 1/s, ipv6_prefix: 0}]",
        "q.yaml:1: listeners[0].rate_limits[0].ipv6_prefix: `0` is not a prefix length; use 1 to 128",
    ),
    (
        "[{rate: 1/s, by: header X-Key, ipv4_prefix: 32}]",
        "q.yaml:1: listeners[0].rate_limits[0].ipv4_prefix: `by: header` does not use this; remove this, or use `by: client`",
    ),
    (
        "[{rate: 1/s, by: all, keys: 10}]",
        "q.yaml:1: listeners[0].rate_limits[0].keys: `by: all` does not use this; remove this, or use `by: client`",
    ),
    (
        "[{rate: 1/s, keys: 99999999}]",
        "q.yaml:1: listeners[0].rate_limits[0].keys: `99999999` would take too much memory; write 16777216 or less",
    ),
    (
        "[{rate: 1/s}, {rate: 1/s, by: client}]",
        "q.yaml:1: listeners[0].rate_limits[1]: this limit is listed twice; remove one",
    ),
];

const RATE_LIMITS_OF_ROUTES: &[Case] = &[(
    "{path: /a, respond: hi, rate_limits: [{rate: fast}]}",
    "q.yaml:1: listeners[0].routes[0].rate_limits[0].rate: `fast` is not a rate; write a number of requests and a time, such as 10/s, 600/m or 5/10s",
)];

const ROUTES: &[Case] = &[
    (
        "{mirror: [{upstream: w, percent: 0}, {percent: 101, upstream: w}, {percent: 5}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].mirror[0].percent: `0` is not a percentage; write a number from 0.0001 to 100\nq.yaml:1: listeners[0].routes[0].mirror[1].percent: `101` is not a percentage; write a number from 0.0001 to 100\nq.yaml:1: listeners[0].routes[0].mirror[2]: `upstream` is missing; add `upstream: ...` (name of an upstream)\nq.yaml:1: listeners[0].routes[0].mirror: this route does not forward to an upstream; remove this\nq.yaml:1: listeners[0].routes[0].mirror[0].upstream: there is no upstream `w`; add it to `upstreams`\nq.yaml:1: listeners[0].routes[0].mirror[1].upstream: there is no upstream `w`; add it to `upstreams`",
    ),
    (
        "{sticky: [{lifetime: 1h, header: x}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0].lifetime: there is no cookie; remove this, or add `cookie`\nq.yaml:1: listeners[0].routes[0].sticky: this route does not forward to an upstream; remove this",
    ),
    (
        "{sticky: [{cookie: a, header: x}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: more than one key; write an item for each\nq.yaml:1: listeners[0].routes[0].sticky: this route does not forward to an upstream; remove this",
    ),
    (
        "{sticky: [{}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: no key is given; add `cookie`, `header` or `query`\nq.yaml:1: listeners[0].routes[0].sticky: this route does not forward to an upstream; remove this",
    ),
    (
        "{sticky: [client], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: unknown; write `client_ip`, or a mapping with `cookie`, `header` or `query`\nq.yaml:1: listeners[0].routes[0].sticky: this route does not forward to an upstream; remove this",
    ),
    (
        "{sticky: [{cookie: 'a b'}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0].cookie: not the name of a cookie\nq.yaml:1: listeners[0].routes[0].sticky: this route does not forward to an upstream; remove this",
    ),
    (
        "{path: /a, path_exact: /b, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].path_exact: a route has one path; remove one, or write two routes",
    ),
    (
        "{path_regex: '(', respond: hi}",
        "q.yaml:1: listeners[0].routes[0].path_regex: `(` is not a regular expression: error: unclosed group",
    ),
    (
        "{host: [a.example, A.example], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].host[1]: this host is listed twice; remove one",
    ),
    (
        "{path_exact: /a, before_regex: on, respond: hi}",
        "q.yaml:1: listeners[0].routes[0].before_regex: it orders prefixes only; remove this, or use `path`",
    ),
    (
        "{queries: [{name: a, exact: b, present: on}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].queries[0]: more than one condition; write one in each item of the list",
    ),
    (
        "{headers: [{name: a, regex: b, ignore_case: on}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].headers[0].ignore_case: not for regular expressions; begin the expression with `(?i)`, and remove this",
    ),
    (
        "{queries: [{name: a, regex: b, ignore_case: on}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].queries[0].ignore_case: not for regular expressions; begin the expression with `(?i)`, and remove this",
    ),
    (
        "{cookies: [{exact: b}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].cookies[0]: `name` is missing; add `name: ...` (name)",
    ),
    (
        "{redirect: {path: '/{moon}'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.path: unknown placeholder `{moon}`; known are `{host}`, `{path}`, `{query}` and, with `path_regex`, its groups: `{1}` or `{name}`",
    ),
    (
        "{redirect: {path: '/{path}'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.path: `{path}` begins with a slash, so that two would follow each other; remove the slash before `{path}`",
    ),
    (
        "{redirect: {path: '/{1}'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.path: `{1}` is a group of `path_regex`, which is not set here; write `path_regex` with a group in parentheses, such as `/old/(.*)`",
    ),
    (
        "{path_regex: '/a(b)', redirect: {path: '/{2}'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.path: `path_regex` has no group `{2}`: it has 1; groups are in parentheses, and counted from 1",
    ),
    (
        "{path_regex: '/(.*)', redirect: {host: '{1}.example'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.host: a group of the path must not choose the host, since it could name another site; write the host, or `{host}`",
    ),
    (
        "{redirect: {host: '{path}.example'}}",
        "q.yaml:1: listeners[0].routes[0].redirect.host: unknown placeholder `{path}`; known are `{host}`",
    ),
    (
        "{respond: hi, response_headers: [{set: X-A, value: '{1}'}]}",
        "q.yaml:1: listeners[0].routes[0].response_headers[0].value: `{1}` is a group of `path_regex`, which is not set here; write `path_regex` with a group in parentheses, such as `/old/(.*)`",
    ),
    (
        "{respond: hi, client_auth: required}",
        "q.yaml:1: listeners[0].routes[0].client_auth: the listener requests no client certificates, so that it would refuse every request; add `tls: {client_auth: {mode: optional, ca: clients-ca.pem}}` to the listener",
    ),
    (
        "{respond: hi, client_auth: maybe}",
        "q.yaml:1: listeners[0].routes[0].client_auth: `maybe` is not a requirement; write `required`, or `{names: [...]}`",
    ),
    (
        "{respond: hi, cors: {origins: ['*'], credentials: on}}",
        "q.yaml:1: listeners[0].routes[0].cors.credentials: with the origin `*`, any page could act for the user; list the origins, or remove this",
    ),
    (
        "{respond: hi, cors: {origins: ['*.a.*']}}",
        "q.yaml:1: listeners[0].routes[0].cors.origins[0]: `*.a.*` has several `*`; write one at most",
    ),
    (
        "{respond: hi, fault: {abort_percent: 5}}",
        "q.yaml:1: listeners[0].routes[0].fault.abort_percent: `abort` is missing; add `abort`, or remove this\nq.yaml:1: listeners[0].routes[0].fault: no fault is set; write `delay` or `abort`",
    ),
    (
        "{respond: hi, upstream_host: server}",
        "q.yaml:1: listeners[0].routes[0].upstream_host: this route does not forward to an upstream; remove this",
    ),
    (
        "{redirect: ftp}",
        "q.yaml:1: listeners[0].routes[0].redirect: `ftp` is not a scheme; write `https` or `http`",
    ),
    (
        "{redirect: {host: a.example, status: 200, port: 0}}",
        "q.yaml:1: listeners[0].routes[0].redirect.port: `0` is not a port; ports are 1 to 65535\nq.yaml:1: listeners[0].routes[0].redirect.status: `200` is not a redirect status; write 301, 302, 303, 307 or 308",
    ),
    (
        "{redirect: {strip_query: on}}",
        "q.yaml:1: listeners[0].routes[0].redirect: the redirect would lead to the same URL; add `scheme`, `host`, `port` or `path`",
    ),
    (
        "{respond: hi, redirect: https}",
        "q.yaml:1: listeners[0].routes[0].redirect: `respond` is given too, and a request goes to one of them; remove one",
    ),
    (
        "{respond: hi, timeout: 1s}",
        "q.yaml:1: listeners[0].routes[0].timeout: this route does not forward to an upstream; remove this",
    ),
    (
        "{split: [{upstream: web}]}",
        "q.yaml:1: listeners[0].routes[0].split[0].upstream: there is no upstream `web`; add it to `upstreams`",
    ),
    (
        "{respond: hi, headers: [{name: 'a b'}]}",
        "q.yaml:1: listeners[0].routes[0].headers[0].name: `a b` is not the name of a header",
    ),
    (
        "{respond: hi, headers: [{name: a, exact: b, regex: c}]}",
        "q.yaml:1: listeners[0].routes[0].headers[0]: more than one condition; write one in each item of the list",
    ),
];
