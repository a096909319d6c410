//! Mistakes in what routes ask for and do, with the exact words that the user sees.

use super::{Case, check, listener};
use crate::file::parse;

#[test]
fn conditions_and_actions() {
    check(ROUTES, |text| listener(&format!("routes: [{text}]")));
}

#[test]
fn plain_text_has_no_certificates() {
    let errors = parse(&listener("tls: off, respond: hi"), "q.yaml").expect_err("it has").to_string();
    let expected =
        "q.yaml:1: listeners[0].certificates: `tls: off` has no use for certificates; remove one of them";
    assert_eq!(errors, expected);
}

#[test]
fn listeners_that_share_a_socket_agree_on_it() {
    let text = "listeners:
  - {address: 1443, tls: off, respond: a, match: {transport: plain}}
  - {address: 1443, tls: off, respond: b, proxy_protocol: required}
";
    let errors = parse(text, "q.yaml").expect_err("they do not").to_string();
    let expected = "q.yaml:3: listeners[1].proxy_protocol: a socket begins in one way: say the same as for the first listener with this address";
    assert_eq!(errors, expected);
}

const ROUTES: &[Case] = &[
    (
        "{sticky: [{lifetime: 1h, header: x}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0].lifetime: there is no cookie; remove this, or add `cookie`\nq.yaml:1: listeners[0].routes[0].sticky: no request of this route goes upstream; remove this",
    ),
    (
        "{sticky: [{cookie: a, header: x}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: more than one thing; write an item for each\nq.yaml:1: listeners[0].routes[0].sticky: no request of this route goes upstream; remove this",
    ),
    (
        "{sticky: [{}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: nothing to go by; add `cookie`, `header` or `query`\nq.yaml:1: listeners[0].routes[0].sticky: no request of this route goes upstream; remove this",
    ),
    (
        "{sticky: [client], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0]: unknown; write `client_ip`, or a mapping with `cookie`, `header` or `query`\nq.yaml:1: listeners[0].routes[0].sticky: no request of this route goes upstream; remove this",
    ),
    (
        "{sticky: [{cookie: 'a b'}], respond: hi}",
        "q.yaml:1: listeners[0].routes[0].sticky[0].cookie: not the name of a cookie\nq.yaml:1: listeners[0].routes[0].sticky: no request of this route goes upstream; remove this",
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
        "{redirect: ftp}",
        "q.yaml:1: listeners[0].routes[0].redirect: `ftp` is not a scheme; write `https` or `http`",
    ),
    (
        "{redirect: {host: a.example, status: 200, port: 0}}",
        "q.yaml:1: listeners[0].routes[0].redirect.port: `0` is not a port; ports are 1 to 65535\nq.yaml:1: listeners[0].routes[0].redirect.status: `200` sends nobody elsewhere; write 301, 302, 303, 307 or 308",
    ),
    (
        "{redirect: {strip_query: on}}",
        "q.yaml:1: listeners[0].routes[0].redirect: the client would be sent to where it is; add `scheme`, `host`, `port` or `path`",
    ),
    (
        "{respond: hi, redirect: https}",
        "q.yaml:1: listeners[0].routes[0].redirect: `respond` is given too, and a request goes to one of them; remove one",
    ),
    (
        "{respond: hi, timeout: 1s}",
        "q.yaml:1: listeners[0].routes[0].timeout: no request of this route goes upstream; remove this",
    ),
    (
        "{split: [{upstream: web}]}",
        "q.yaml:1: listeners[0].routes[0].split[0].upstream: no upstream is called `web`; add it to `upstreams`",
    ),
    (
        "{respond: hi, headers: [{name: 'a b'}]}",
        "q.yaml:1: listeners[0].routes[0].headers[0].name: `a b` is not the name of a header",
    ),
    (
        "{respond: hi, headers: [{name: a, exact: b, regex: c}]}",
        "q.yaml:1: listeners[0].routes[0].headers[0]: there are several conditions here; write one in each item of the list",
    ),
];
