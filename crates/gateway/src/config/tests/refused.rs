use super::{listener, mistakes};
#[test]
fn print_all() {
    let up = |s: &str| format!("{}\nupstreams: {{web: {{{s}}}}}", listener("upstream: web"));
    let tls = |s: &str| listener(&format!("respond: hi, tls: {{{s}}}"));
    let cases = [
        "a: [b".to_owned(), "listeners:\n\t- a: 1".into(), "listeners:\n  - address: [::]:8443\n    mode: http".into(),"listeners:\n  - address: [::1]\n    mode: http".into(),
        "a: 1\n---\nb: 2".into(), "{[a]: 1}".into(), "? \n: 1".into(), "a: !secret x".into(), "a: &x [*x]".into(), "a: *nope".into(), "[".repeat(100),
        "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e]".into(),
        "a: 'x".into(), "a: b: c".into(),"a: 1\n b: 2".into(), "a: @x".into(), "a: %x".into(), "\u{0}".into(), "a: \"\\q\"".into(),
        listener("mod: http, respond: hi"), listener("certificats: [], respond: hi"), listener("poll_delay: 1ms, respond: hi"), listener("quux: 1, respond: hi"),
        listener("respond: hi, respond: ho"), listener("mode: htttp, respond: hi"), listener("mode: 3, respond: hi"), listener("mode: [http], respond: hi"), listener("mode: , respond: hi"),
        "listeners: [{respond: hi}]".into(),
        "listeners: [{address: 'nonsense', certificates: [{}], respond: hi}]".into(),
        "listeners: [{address: '127.0.0.1', certificates: [{chain: a}], respond: hi}]".into(),
        "listeners: [{address: '127.0.0.1:99999', certificates: [], respond: hi}]".into(),
        "listeners: [{address: '::1', certificates: x, respond: hi}]".into(),
        "listeners: [{address: [127], certificates: [x], respond: hi}]".into(),
        listener(""), listener("upstream: web"), listener("upstream: web, respond: hi")+"\nupstreams: {web: {servers: ['a:1']}}", listener("upstream: wbe")+"\nupstreams: {web: {servers: ['a:1']}}", listener("upstream: something")+"\nupstreams: {web: {servers: ['a:1']}}",
        listener("routes: [{host: a.example}]"), listener("routes: [{respond: a},{respond: b}]"), listener("routes: [{respond: a}], respond: b"), listener("routes: []"),
        listener("routes: [{host: 'http://x', respond: a},{host: 'x:80', respond: a},{host: 'a*b', respond: a},{host: 'a..b', respond: a},{host: 'é', respond: a},{host: 'a b', respond: a},{path: x, respond: a},{path: '/a?b', respond: a},{path: '/a b', respond: a}]"),
        listener("respond: {status: 99, content_type: \"a\\nb\", body: [x]}"), listener("respond: {status: 204, body: x}"),
        listener("respond: hi, proxy_protocol: v1"), listener("respond: hi, timeouts: {handshake: 10, header: 0s, idle: x}"), listener("respond: hi, timeouts: {handshake: 10 s, header: 400d, idle: 5w}"), listener("respond: hi, timeouts: {handshake: -1s, header: 1e3s, idle: ''}"), listener("respond: hi, limits: {connections: 0, handshakes: 1k}"), listener("respond: hi, limits: 5"),
        tls("min: 1.4"), tls("min: TLSv1.4"), tls("min: 1.3, max: 1.2"), tls("min: 1.3, static_rsa: on"), tls("max: 1.1"), tls("groups: [X448]"), tls("groups: [X25519MLKEM1024]"),tls("groups: [X25519, x25519]"), tls("groups: []"), tls("groups: [X25519MLKEM768], max: 1.2"), tls("alpn: [h3]"), tls("alpn: [h2, h2]"), tls("alpn: ['']"), tls("static_rsa: maybe"), tls("client_auth: required"), tls("client_auth: {mode: required}"), tls("client_auth: {ca: x}"), tls("client_auth: {mode: sometimes, ca: x}"), tls("client_auth: on"),
        listener("mode: tcp, respond: hi"), listener("mode: tcp, routes: [{host: a, upstream: web},{path: /b, upstream: web}]")+"\nupstreams: {web: {servers: ['a:1']}}", listener("mode: tcp, routes: [{respond: x}]"),
        "listeners:\n- {address: '0.0.0.0:1', certificates: [{chain: a, key: b}], respond: hi}\n- {address: ':1', certificates: [{chain: a, key: b}], respond: hi}\n- {address: '127.0.0.1:9901', certificates: [{chain: a, key: b}], respond: hi}\n".into(),
        "listeners: [{address: '127.0.0.1:1', certificates: [{chain: -----BEGIN X y, key: \"-----BEGIN PRIVATE KEY----- MIIsecret\"}], respond: hi}]".into(),
        "listeners: [{address: \"-----BEGIN PRIVATE KEY-----\\nMIIsecret\", certificates: [{chain: x, key: y}], respond: hi}]".into(),
        up(""), up("servers: []"), up("servers: [a]"), up("servers: ['http://a:1', 'https://a', '::1', '[::1]', 'a:0', ':80', 'a b:80', '[a]:80', {weight: 1}, {address: 'a:1', weight: 0}, {address: 'a:1', weight: 2}]"),
        up("servers: ['a:1'], balance: rond_robin, health: maybe, tls: yes please, protocol: h2, proxy_protocol: on, retries: -1, pool: 0, timeouts: {connect: 1}"),
        up("servers: ['a:1'], health: {path: x, interval: 0s}, tls: {server_name: '*.x', ca: x, verify: off}"),
        listener("respond: hi")+"\nupstreams: {'a b': {servers: ['a:1']}}\n", listener("respond: hi")+"\nupstreams: []\n",
        listener("respond: hi")+"\nengine: {backend: gpu, poll_delay: 5, batch: 0, threads: many, queue: x}\nresumption: {lifetime: 8d, cache_size: 0}\nadmin: on\nthreads: 0\ndrain_timeout: 1\naccess_log: stderr",
        listener("respond: hi")+"\nresumption: maybe\nadmin: {adress: x}\naccess_log: ''\nengine: off",
        listener("respond: hi")+"\nadmin: '127.0.0.1:8443'",
        "listeners:\n  - address: 127.0.0.1:1\n    certificates:\n      - chain: a\n        key: b\n    certificats: 1\n    respond: hi\n<<: {a: 1}\n".into(),
    ];
    for text in cases {
        println!("{}\n    => {}", text, mistakes(&text).replace('\n', "\n    => "));
    }
}
