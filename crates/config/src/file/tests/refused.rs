//! Mistakes in whole documents, with the exact messages that the user sees.

use super::{Case, check, listener, mistakes};

#[test]
fn whole_documents() {
    check(DOCUMENTS, str::to_owned);
}

#[test]
fn syntax() {
    check(SYNTAX, str::to_owned);
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
        "q.yaml:7: the document is too large: aliases multiply it, or it is not a configuration"
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
        ("127.0.0.1:1", "127.0.0.1:1", "the listener on line 2 already uses 127.0.0.1:1"),
        ("0.0.0.0:1", ":1", "the listener on line 2 already uses 0.0.0.0:1"),
        ("127.0.0.1:1", "127.0.0.1:9901", "`admin` already uses 127.0.0.1:9901"),
    ] {
        let expected = format!("q.yaml:3: listeners[1].address: {message}; give each its own address");
        assert_eq!(mistakes(&two(one, other)), expected);
    }
}

const DOCUMENTS: &[Case] = &[
    ("", "q.yaml:1: the file is empty; it needs at least `listeners`"),
    ("# nothing\n", "q.yaml:1: the file is empty; it needs at least `listeners`"),
    ("---\n~\n", "q.yaml:2: the file is empty; it needs at least `listeners`"),
    (
        "just text",
        "q.yaml:1: found `just text`, expected a mapping with the keys `include`, `listeners`, `upstreams`, `resolver`, `limits`, `engine`, `resumption`, `acme`, `sampling`, `admin`, `threads`, `lame_duck`, `drain_timeout`, `access_log`, `access_log_fields`, `request_ids`, `tracing`",
    ),
    (
        "- a",
        "q.yaml:1: found a list, expected a mapping with the keys `include`, `listeners`, `upstreams`, `resolver`, `limits`, `engine`, `resumption`, `acme`, `sampling`, `admin`, `threads`, `lame_duck`, `drain_timeout`, `access_log`, `access_log_fields`, `request_ids`, `tracing`",
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
    ("a: !secret x", "q.yaml:1: the tag `!secret` is not supported; remove it"),
    ("a: &x [*x]", "q.yaml:1: this alias is inside the value that it refers to; write the value out"),
    (
        "a: *nope",
        "q.yaml:1: not valid YAML: while parsing node, found unknown anchor; a value that begins with `*` needs quotes: \"*.example.com\"",
    ),
];

const TOP_LEVEL: &[Case] = &[
    ("listener: 1", "q.yaml:2: listener: unknown key; did you mean `listeners`?"),
    (
        "<<: {a: 1}",
        "q.yaml:2: a: unknown key; known here are `include`, `listeners`, `upstreams`, `resolver`, `limits`, `engine`, `resumption`, `acme`, `sampling`, `admin`, `threads`, `lame_duck`, `drain_timeout`, `access_log`, `access_log_fields`, `request_ids`, `tracing`",
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
        "q.yaml:2: engine: found `off`, expected a mapping with the keys `backend`, `poll_delay`, `latency_budget`, `batch`, `threads`, `queue`, `key_exchange`",
    ),
    (
        "limits: {memory: 200%}",
        "q.yaml:2: limits.memory: `200` is not a percentage; write a number from 0.0001 to 100",
    ),
    (
        "limits: {memory: 8MiB}",
        "q.yaml:2: limits.memory: with `8MiB`, a gateway would refuse its first requests; write `64MiB` or more, or a percentage such as `80%`",
    ),
    (
        "engine: {backend: tpu}",
        "q.yaml:2: engine.backend: `tpu` is not a backend; use auto, gpu, lanes or scalar",
    ),
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
        "q.yaml:2: resumption.lifetime: TLS limits session lifetimes to 7d; write a shorter time",
    ),
    (
        "resumption: {cache: disk}",
        "q.yaml:2: resumption.cache: `disk` is not a session cache; use off, memory or an address like redis://127.0.0.1:6379",
    ),
    (
        "resumption: {cache: 'redis://'}",
        "q.yaml:2: resumption.cache: the address has no host; write it like redis://127.0.0.1:6379",
    ),
    (
        "resumption: {cache: 'redis://r'}",
        "q.yaml:2: resumption.cache: sessions in Redis are sealed with a secret that all gateways share; make one with `quadrille tickets generate FILE` and name it as `fleet_secret: FILE`",
    ),
    (
        "resumption: {tickets: fleet}",
        "q.yaml:2: resumption.tickets: ticket keys of a fleet are shared through Redis; give its address, such as `cache: redis://127.0.0.1:6379`",
    ),
    (
        "resumption: {fleet_secret: f}",
        "q.yaml:2: resumption.fleet_secret: no effect: the cache is not in Redis; remove `fleet_secret`, or write `cache: redis://HOST`",
    ),
    (
        "resumption: {tickets: []}",
        "q.yaml:2: resumption.tickets: the list is empty; give it at least one item",
    ),
    (
        "resumption: {rotation: 500ms}",
        "q.yaml:2: resumption.rotation: rotation more often than every second is not useful; write `1s` or more",
    ),
    (
        "resumption: {cache_size: 0}",
        "q.yaml:2: resumption.cache_size: a cache in this process keeps at least 1 session; to keep none, write `cache: off`",
    ),
    (
        "admin: on",
        "q.yaml:2: admin: `on` is not an address of this machine; write an IP address and a port: `0.0.0.0:8443`",
    ),
    ("admin: {adress: 9901}", "q.yaml:2: admin.adress: unknown key; did you mean `address`?"),
    (
        "admin: {address: off}",
        "q.yaml:2: admin.address: neither an address nor a socket is left; write `admin: off`, or add `socket`",
    ),
    (
        "admin: {socket: {path: /run/a.sock, users: [root], mode: rw}}",
        "q.yaml:2: admin.socket.users[0]: `root` is not a user id; write the number that `id -u NAME` prints\nq.yaml:2: admin.socket.mode: `rw` is not a mode; write 0660, or 0600",
    ),
    (
        "admin: '127.0.0.1:8443'",
        "q.yaml:1: listeners[0].address: `admin` already uses 127.0.0.1:8443; give each its own address",
    ),
    (
        "threads: 0",
        "q.yaml:2: threads: `0` is not a whole number of at least 1; write plain digits, or `auto` for one for each CPU",
    ),
    ("lame_duck: 5", "q.yaml:2: lame_duck: `5` has no unit; write `5s` or `5ms`"),
    ("drain_timeout: 1", "q.yaml:2: drain_timeout: `1` has no unit; write `1s` or `1ms`"),
    (
        "access_log_fields: [default, user_agnet]",
        "q.yaml:2: access_log_fields[1]: `user_agnet` is not a field of the access log; did you mean `user_agent`?",
    ),
    (
        "access_log_fields: query",
        "q.yaml:2: access_log_fields: found `query`, expected a list, with `- ` before every item",
    ),
    ("request_ids: always", "q.yaml:2: request_ids: `always` is not a switch; use on or off"),
    ("access_log: ''", "q.yaml:2: access_log: the path is empty; write the path of a file"),
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
    "q.yaml:13: listeners[0].routes[0].upstream: there is no upstream `ap`; did you mean `app`?",
    "q.yaml:14: listeners[1]: `address` is missing; add `address: ...` (address and port)",
    "q.yaml:14: listeners[1]: `certificates` is missing; add `certificates: ...` (list of certificates), or `tls: off` for plain text",
    "q.yaml:14: listeners[1]: no destination for connections; add `upstream`, `respond` or `routes`",
    "q.yaml:19: upstreams.app.servers[1]: `app` has no port; write `host:port`",
    "q.yaml:20: upstreams.app.pool: `lots` is not a whole number of at least 1; write plain digits",
    "q.yaml:22: engine.queue: `0` is not a whole number of at least 1; write plain digits",
    "q.yaml:23: treads: unknown key; did you mean `threads`?",
];
