//! The stock Envoy and Quadrille read the same bootstrap, and respond to the same requests in the same way.

use super::{
    more_requests::{self, Request},
    stock::{Both, ask, difference, with_ports},
    upstream,
};

const BOOTSTRAP: &str = include_str!("routes.yaml");

/// Header fields of a WebSocket upgrade, which the upstream does not support.
const WEBSOCKET: &[&str] = &[
    "-H",
    "Connection: upgrade",
    "-H",
    "Upgrade: websocket",
    "-H",
    "Sec-WebSocket-Version: 13",
    "-H",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// curl's arguments after the URL's path. A leading `!` marks a local reply, of which only the status is compared.
const REQUESTS: &[(&str, &[&str])] = &[
    ("/", &["-H", "Host: exact.example"]),
    ("/", &["-H", "Host: EXACT.example"]),
    ("/", &["-H", "Host: exact.example:99"]),
    ("/", &["-H", "Host: a.example"]),
    ("/", &["-H", "Host: a.b.long.example"]),
    ("/", &["-H", "Host: prefix.test"]),
    ("!/", &["-H", "Host: none.test"]),
    ("/only", &["-H", "Host: none.test"]),
    ("/a?b=c", &["-H", "Host: tls.test"]),
    ("/exact", &[]),
    ("/exact?x=1", &[]),
    ("!/exact/", &[]),
    ("/CASE", &[]),
    ("/v12/x", &[]),
    ("!/v12/x/y", &[]),
    ("/segment", &[]),
    ("/segment/a", &[]),
    ("!/segmented", &[]),
    ("//segment//a/../b", &[]),
    ("/x/../exact", &[]),
    ("/header", &["-H", "x-a: a"]),
    ("/header", &["-H", "x-a: BCD"]),
    ("/header", &["-H", "x-n: 9"]),
    ("!/header", &["-H", "x-n: 10"]),
    ("/header", &["-H", "x-p: 1"]),
    ("/header", &["-X", "POST"]),
    ("!/header", &["-H", "x-z: z"]),
    ("!/header", &[]),
    ("/header", &["-H", "x-z: y"]),
    ("/query?q=1", &[]),
    ("/query?a=b&q=2", &[]),
    ("!/query?z", &[]),
    ("/redirect/https/a?b=c", &[]),
    ("/redirect/https", &["-H", "Host: h.test:81"]),
    ("/redirect/host/a?b=c", &[]),
    ("/redirect/path?b=c", &[]),
    ("/redirect/prefix/a?b=c", &[]),
    ("/redirect/regex/a/b?c=d", &[]),
    ("/gone", &[]),
    ("/up/prefix/a?b=c", &[]),
    ("/up/regex/abc/12?x=y", &[]),
    ("/up/whole1/a/b?c=d", &[]),
    ("/redirect/whole1/a/b?c=d", &[]),
    ("/up/host/z", &[]),
    (
        "/up/headers",
        &[
            "-H",
            "x-a: 1",
            "-H",
            "x-set: old",
            "-H",
            "x-absent: mine",
            "-H",
            "x-gone: g",
            "-H",
            "x-added: zero",
        ],
    ),
    ("/up/headers", &[]),
    ("/up/no-websocket", &[]),
    ("!/up/no-websocket", WEBSOCKET),
    ("/up/weighted", &[]),
    ("/up/retry", &[]),
    ("!/up/nowhere", &[]),
    ("!/up/refused", &[]),
    ("!/up/slow", &[]),
    ("/cors", &["-H", "Origin: https://a.example"]),
    ("/cors", &["-H", "Origin: https://x.b.example"]),
    ("/cors", &["-H", "Origin: https://c.example"]),
    ("/cors", &[]),
    (
        "/cors",
        &["-X", "OPTIONS", "-H", "Origin: https://a.example", "-H", "Access-Control-Request-Method: POST"],
    ),
    (
        "/cors",
        &["-X", "OPTIONS", "-H", "Origin: https://c.example", "-H", "Access-Control-Request-Method: POST"],
    ),
    ("/cors", &["-X", "OPTIONS", "-H", "Origin: https://a.example"]),
    ("/fault", &[]),
    ("/fault", &["-X", "POST", "-d", "x"]),
    ("!/nothing", &[]),
];

#[test]
fn both_answer_the_same_way() {
    let upstream = upstream::start().port();
    let Some(both) = Both::start(&with_ports(BOOTSTRAP, &[("UPSTREAM", upstream)])) else { return };
    let mut differences = Vec::new();
    let written = REQUESTS.iter().map(|(path, arguments)| {
        ((*path).to_owned(), arguments.iter().map(|argument| (*argument).to_owned()).collect())
    });
    let requests: Vec<Request> = written.chain(more_requests::all()).collect();
    assert!(requests.len() >= 300, "{}", requests.len());
    for (path, arguments) in &requests {
        let (path, status_only) = path.strip_prefix('!').map_or((&**path, false), |path| (path, true));
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let [mut ours, mut theirs] = both.ports().map(|port| ask("http", port, path, &words));
        // Envoy's response has no body if there is no route.
        if status_only || theirs[0] == "404" {
            ours.truncate(1);
            theirs.truncate(1);
        }
        differences.extend(difference(&format!("{path} {arguments:?}"), &ours, &theirs));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
