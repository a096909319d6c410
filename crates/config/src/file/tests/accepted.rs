//! Accepted files, and their meaning.

use super::{listener, parsed};
use crate::{
    Diagnostics,
    file::{load, parse, show},
    model::{
        AccessLog, Action, Balance, Chain, ClientAuth, Gateway, Group, HealthProbe, KeySource, Listener,
        Mode, ProxyProtocolOut, Serve, Source, Tls, TlsPolicy, Upstream, Version,
    },
};
use serde_json::Value;
use std::{net::SocketAddr, path::Path, time::Duration};

const FULL: &str = include_str!("../../../../../examples/quadrille.yaml");
const MINIMAL: &str = include_str!("../../../../../examples/minimal.yaml");

/// Returns the source of a local key.
fn pem(key: &KeySource) -> &Source {
    match key {
        KeySource::Pem(source) => source,
        KeySource::Keyless(_) | KeySource::Pkcs11(_) => panic!("the key is elsewhere"),
    }
}

/// Returns the TLS settings of a listener with one chain.
fn tls(listener: &Listener) -> &Tls {
    listener.chains[0].tls.as_ref().expect("TLS")
}

#[test]
fn the_full_example() {
    let gateway = parsed(FULL);
    let [web, plain, shared, mqtt, shop, trial] = &gateway.listeners[..] else {
        panic!("{} listeners", gateway.listeners.len())
    };

    assert_eq!(web.address, "[::]:8443".parse::<SocketAddr>().unwrap());
    assert_eq!(pem(&tls(web).certificates[1].key).path().unwrap(), Path::new("etc/tls/example.com-rsa.key"));
    assert!(matches!(&tls(web).policy.client_auth, ClientAuth::Optional(check) if check.ca.is_some()));
    let Serve::Http(http) = &web.chains[0].serve else { panic!("the listener does not serve HTTP") };
    let hosts: Vec<_> = http.routes.hosts.iter().map(|host| host.domains[0].to_string()).collect();
    assert_eq!(
        hosts,
        ["example.com", "static.example.com", "cdn.example.com", "*", "*.example.com", "old.example.com"]
    );
    let last = http.routes.hosts[3].routes.last().unwrap();
    assert!(matches!(&last.action, Action::Forward(forward) if forward.to[0].upstream == "web"));
    let old = &http.routes.hosts[5].routes[0];
    assert!(matches!(&old.action, Action::Respond(answer) if answer.status == 410));

    assert!(plain.chains[0].tls.is_none());
    let [canary, others] = &shared.chains[..] else { panic!("{} chains", shared.chains.len()) };
    assert_eq!(canary.accepts.server_names, ["canary.example.com", "*.canary.example.com"]);
    assert!(others.accepts.is_any());
    let Serve::Http(http) = &canary.serve else { panic!("the listener does not serve HTTP") };
    let routes = &http.routes.hosts[0].routes;
    let conditional =
        routes.iter().find(|route| route.headers.len() == 6).expect("a route with six conditions");
    let Action::Forward(forward) = &conditional.action else { panic!("it does not go upstream") };
    assert_eq!((forward.to.len(), forward.timeout), (2, Some(Duration::from_secs(15))));
    assert_eq!(forward.retry.as_ref().unwrap().on.statuses, [429]);

    let KeySource::Keyless(keyless) = &tls(shop).certificates[0].key else { panic!("the key is here") };
    assert_eq!(keyless.servers[1].to_string(), "keys-2.internal.example:2407");
    assert_eq!(keyless.fallback.as_ref().unwrap().path().unwrap(), Path::new("etc/tls/shop.key"));

    assert_eq!((mqtt.chains[0].mode(), tls(mqtt).policy.min), (Mode::Tcp, Version::Tls12));
    assert_eq!(tls(mqtt).policy.alpn, ["mqtt"]);
    assert_eq!(tls(mqtt).policy.ciphers[1], "ECDHE-RSA-AES128-GCM-SHA256");
    assert_eq!(trial.address, "127.0.0.1:8444".parse::<SocketAddr>().unwrap());

    let upstream = |name: &str| &gateway.upstreams[name];
    assert_eq!(upstream("web").servers[1].weight.get(), 2);
    let health = upstream("web").health.as_ref().unwrap();
    let HealthProbe::Http(probe) = &health.probe else { panic!("no request") };
    assert_eq!((probe.path.as_str(), probe.host.as_deref()), ("/healthz", Some("shop.example.com")));
    assert_eq!(probe.statuses, [(200, 299), (401, 401)]);
    assert_eq!(probe.body.as_ref().map(|body| body.matches("is ready.")), Some(true));
    assert_eq!(upstream("web").servers[1].max_connections.map(usize::from), Some(200));
    assert_eq!(upstream("web").servers[2].priority, 1);
    assert_eq!(upstream("legacy").slow_start, Some(Duration::from_secs(30)));
    assert_eq!(upstream("api").balance, Balance::Hash);
    assert!(upstream("api").tls.as_ref().unwrap().verify);
    assert_eq!(upstream("mqtt").proxy_protocol, ProxyProtocolOut::V2);
    assert!(matches!(&gateway.access_log, AccessLog::RotatedFile(file) if file.max_size == 100 << 20));
}

#[test]
fn every_setting_reaches_the_model() {
    let gateway = parsed(
        "listeners:
  - address: 127.0.0.1:1
    certificates: [{chain: c, key: k, ocsp: o}]
    respond: hi
    tls: {min: 1.0, max: 1.2, groups: [P-521], alpn: [http/1.1], cbc: on, static_rsa: on, allow_weak_keys: on,
          ocsp_stapling: on, certificate_compression: off, client_auth: {mode: required, ca: ca.pem, crl: crl.pem}}
    paths: {normalize: off, merge_slashes: off, escaped_slashes: keep, parameters: keep, send: received}
    rate_limits: [{rate: 60/m, burst: 7, by: header X-Key, keys: 8}, {rate: 9/s, ipv4_prefix: 10, ipv6_prefix: 11}]
    proxy_protocol: required
    http3: on
    alt_svc: h3=:443
    timeouts: {handshake: 1s, handshake_deadline: 500ms, header: 2s, request: 4s, idle: 3s}
    limits: {connections: 4, handshakes: 5, header: 16KiB, headers: 32, url: 1KiB, body: 33}
upstreams:
  u:
    servers: [{address: 'a:1', weight: 6}]
    dns_refresh: 29s
    dns_lookup_family: v4_only
    balance: random
    health: {path: /h, interval: 7s, timeout: 8s, healthy: 9, unhealthy: 10}
    outlier_detection: {errors: off, gateway_errors: 3, ejection: 4s, longest_ejection: 5s, interval: 6s, most: 7}
    limits: {connections: 8, pending: 0, requests: 9, retries: 10}
    tls: {server_name: Name.example, verify: off, min: 1.1, max: 1.2, groups: [P-384], cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}
    protocol: http2
    proxy_protocol: v1
    retries: 0
    pool: 11
    timeouts: {connect: 12s, read: 13s, write: 14s, idle: 15s}
engine: {backend: scalar, poll_delay: 16ms, latency_budget: 2ms, batch: 17, threads: 18, queue: 19, key_exchange: off}
resumption:
  tickets: [t1, t2]
  cache: rediss://app:word@r:7000/3
  cache_size: 20
  lifetime: 21s
  rotation: 22s
  early_data: on
  lookup_timeout: 23ms
  fleet_secret: f
  redis_password: p
  redis_ca: ca
sampling: {one_in: 25, per_second: 26}
limits: {memory: 640MiB}
resolver: {servers: [192.0.2.1, '[2001:db8::1]:5353'], timeout: 28s}
admin: {address: '127.0.0.1:22', hosts: [gateway.Example, '*.internal'], socket: {path: a.sock, group: adm, users: [32], mode: 640}}
threads: 23
lame_duck: 27s
drain_timeout: 24s
access_log: log/access.log
access_log_fields: [client, query]
request_ids: on
tracing: {endpoint: 'https://c:30', protocol: http, tls: {ca: tracing.pem}, headers: {Api-Key: word}, percent: 31, parents: all, service: s}
",
    );
    let expected = serde_json::json!({
        "listeners": [{
            "address": "127.0.0.1:1", "mode": "http", "proxy_protocol": "required", "http3": true,
            "rate_limits": [
                {"rate": "60/m", "burst": 7, "by": "header x-key", "keys": 8},
                {"rate": "9/s", "burst": 9, "by": "client", "ipv4_prefix": 10, "ipv6_prefix": 11, "keys": 65536},
            ],
            "alt_svc": "h3=:443",
            "certificates": [{"chain": "etc/c", "key": "etc/k", "ocsp": "etc/o"}],
            "tls": {
                "min": "1.0", "max": "1.2", "groups": ["P-521"], "alpn": ["http/1.1"],
                "cbc": true, "static_rsa": true, "allow_weak_keys": true, "ocsp_stapling": "on",
                "certificate_compression": false,
                "client_auth": {"mode": "required", "ca": "etc/ca.pem", "crl": "etc/crl.pem"},
            },
            "routes": [{
                "host": "*", "path": "/",
                "respond": {"status": 200, "content_type": "text/plain; charset=utf-8", "body": "hi"},
            }],
            "paths": {
                "normalize": false, "merge_slashes": false, "escaped_slashes": "keep", "parameters": "keep",
                "send": "received",
            },
            "timeouts": {"handshake": "1s", "handshake_deadline": "500ms", "header": "2s", "request": "4s", "idle": "3s"},
            "limits": {
                "connections": 4, "handshakes": 5, "header": "16KiB", "headers": 32, "url": "1KiB", "body": "33"
            },
        }],
        "upstreams": {"u": {
            "servers": [{"address": "a:1", "weight": 6, "priority": 0}], "dns_refresh": "29s", "dns_lookup_family": "v4_only", "balance": "random",
            "health": {"path": "/h", "method": "GET", "statuses": [200], "interval": "7s", "timeout": "8s", "healthy": 9, "unhealthy": 10},
            "outlier_detection": {
                "errors": "off", "gateway_errors": 3, "ejection": "4s", "longest_ejection": "5s", "interval": "6s", "most": 7,
            },
            "limits": {"connections": 8, "pending": 0, "requests": 9, "retries": 10},
            "tls": {
                "server_name": "name.example", "verify": false, "min": "1.1", "max": "1.2", "groups": ["P-384"],
                "cipher_suites": ["AES128-SHA"]
            },
            "protocol": "http2", "proxy_protocol": "v1", "retries": 0, "pool": 11,
            "timeouts": {"connect": "12s", "read": "13s", "write": "14s", "idle": "15s"},
        }},
        "resolver": {"servers": ["192.0.2.1:53", "[2001:db8::1]:5353"], "timeout": "28s"},
        "limits": {"memory": "640MiB"},
        "engine": {"backend": "scalar", "poll_delay": "16ms", "latency_budget": "2ms", "batch": 17, "threads": 18, "queue": 19, "key_exchange": "off"},
        "resumption": {
            "tickets": ["etc/t1", "etc/t2"], "cache": "rediss://app:***@r:7000/3", "cache_size": 20,
            "lifetime": "21s", "rotation": "22s", "early_data": "on", "lookup_timeout": "23ms", "fleet_secret": "etc/f",
            "redis_password": "etc/p", "redis_ca": "etc/ca",
        },
        "sampling": {"one_in": 25, "per_second": 26},
        "admin": {"address": "127.0.0.1:22", "hosts": ["gateway.example", "*.internal"], "socket": {"path": "etc/a.sock", "group": "adm", "users": [32], "mode": "0640"}}, "threads": 23, "lame_duck": "27s",
        "drain_timeout": "24s",
        "access_log": "etc/log/access.log", "access_log_fields": ["client", "query"], "request_ids": true,
        "tracing": {"endpoint": "https://c:30", "protocol": "http", "tls": {"ca": "etc/tracing.pem", "min": "1.2", "max": "1.3", "groups": ["X25519MLKEM768", "X25519", "P-256", "P-384", "P-521"], "verify": true}, "headers": {"api-key": "[redacted]"}, "percent": 31.0, "parents": "all", "service": "s"},
    });
    assert_eq!(show(&gateway), expected);
}

/// Keys that are left out have the model's defaults, which the command line uses as well.
#[test]
fn defaults_are_the_models() {
    let gateway = parsed(MINIMAL);
    let (listener, upstream) = (&gateway.listeners[0], &gateway.upstreams["app"]);
    let bare = Gateway {
        listeners: vec![Listener::new(listener.address, listener.place.clone(), {
            let certificates = tls(listener).certificates.clone();
            let tls = Tls { certificates, policy: TlsPolicy::default() };
            Chain::new(Some(tls), listener.chains[0].serve.clone(), listener.place.clone())
        })],
        upstreams: [("app".into(), Upstream::new(upstream.servers.clone(), upstream.place.clone()))].into(),
        ..Gateway::default()
    };
    assert_eq!(show(&gateway), show(&bare));

    let said = |pointer| show(&gateway).pointer(pointer).cloned().unwrap_or(Value::Null);
    assert_eq!(said("/admin/address"), "127.0.0.1:9901");
    assert_eq!(said("/lame_duck"), "5s");
    let fields = said("/access_log_fields");
    let has = |name: &str| fields.as_array().is_some_and(|fields| fields.contains(&name.into()));
    assert!(
        has("client") && has("batch") && has("upstream_server") && !has("query") && !has("user_agent"),
        "{fields}"
    );
    assert_eq!(said("/request_ids"), false);
    assert_eq!(said("/drain_timeout"), "30s");
    assert_eq!(said("/listeners/0/tls/min"), "1.2");
    assert_eq!(said("/engine/poll_delay"), "0s");
}

/// Short forms mean the same as the long ones.
#[test]
fn short_forms() {
    let web = "upstreams: {web: {servers: ['a:1']}}";
    let upstream = |extra: &str| format!("{}\nupstreams: {{web: {{{extra}}}}}", listener("upstream: web"));
    let top = |extra: &str| format!("{}\n{extra}", listener("respond: hi"));
    let tls = |extra: &str| listener(&format!("respond: hi, tls: {{{extra}}}"));
    let pairs = [
        (listener("upstream: web") + "\n" + web, listener("routes: [{upstream: web}]") + "\n" + web),
        (listener("respond: hi"), listener("routes: [{host: '*', path: /, respond: {body: hi}}]")),
        (listener("respond: hi"), listener("respond: {status: 200, body: hi}")),
        (listener("respond: hi, proxy_protocol: on"), listener("respond: hi, proxy_protocol: required")),
        (upstream("servers: ['a:1']"), upstream("servers: [{address: 'a:1', weight: 1}]")),
        (upstream("servers: ['a:1'], tls: on"), upstream("servers: ['a:1'], tls: {verify: on}")),
        (upstream("servers: ['a:1'], tls: off"), upstream("servers: ['a:1']")),
        (upstream("servers: ['a:1'], health: on"), upstream("servers: ['a:1'], health: {}")),
        (top("resumption: off"), top("resumption: {tickets: off, cache: off}")),
        (top("resumption: on"), top("resumption: {tickets: local, cache: memory}")),
        (top("resumption: {tickets: on, cache: yes}"), top("resumption: {tickets: local, cache: memory}")),
        (top("resumption: {tickets: a.key}"), top("resumption: {tickets: [a.key]}")),
        (top("sampling: on"), top("sampling: {one_in: 64, per_second: 100}")),
        (top("admin: '7000'"), top("admin: {address: '127.0.0.1:7000'}")),
        (top("admin: {socket: a.sock}"), top("admin: {address: 9901, socket: {path: a.sock}}")),
        (tls("min: TLSv1.2"), tls("min: 1.2")),
        (tls("max: '1.2'"), tls("max: tlsv1.2")),
        (tls("static_rsa: yes"), tls("static_rsa: true")),
        (tls("client_auth: off"), tls("client_auth: {mode: off, ca: x}")),
        (tls("groups: [p256, secp384r1]"), tls("groups: [P-256, P-384]")),
        (top("access_log: on"), top("access_log: stdout")),
        (top("access_log_fields: [default]"), top("request_ids: off")),
        (top("access_log_fields: [query, path, query]"), top("access_log_fields: [path, query]")),
        (top("drain_timeout: 5s"), top("drain_timeout: 5000ms")),
    ];
    for (short, long) in pairs {
        assert_eq!(show(&parsed(&short)), show(&parsed(&long)), "{short}");
    }
}

#[test]
fn a_tcp_listener_offers_no_alpn_of_its_own() {
    let gateway = parsed(&(listener("mode: tcp, upstream: web") + "\nupstreams: {web: {servers: ['a:1']}}"));
    assert!(tls(&gateway.listeners[0]).policy.alpn.is_empty());
    assert_eq!(tls(&parsed(&listener("respond: hi")).listeners[0]).policy.alpn, ["h2", "http/1.1"]);
    assert!(tls(&parsed(&listener("respond: hi, tls: {alpn: []}")).listeners[0]).policy.alpn.is_empty());
}

#[test]
fn anchors_and_several_ports() {
    let gateway = parsed(
        "listeners:
  - address: 127.0.0.1:0
    certificates: &certificates [{chain: c.pem, key: k.pem}]
    respond: hi
  - address: 127.0.0.1:0
    certificates: *certificates
    respond: hi
    tls: {groups: [X25519]}
admin: off
",
    );
    assert_eq!(tls(&gateway.listeners[1]).certificates.len(), 1);
    assert_eq!(tls(&gateway.listeners[1]).policy.groups, [Group::X25519]);
    assert!(gateway.admin.is_none());
}

#[test]
fn a_key_in_place_is_kept_and_not_shown() {
    let gateway = parsed(
        "listeners:
  - address: 127.0.0.1:1
    respond: hi
    certificates:
      - chain: c.pem
        key: |
          -----BEGIN PRIVATE KEY-----
          c2VjcmV0
          -----END PRIVATE KEY-----
",
    );
    let key = pem(&tls(&gateway.listeners[0]).certificates[0].key);
    assert_eq!(
        key.read().unwrap().as_slice(),
        b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    );
    assert!(key.path().is_none());
    assert_eq!(show(&gateway).pointer("/listeners/0/certificates/0/key").unwrap(), "(inline)");
    assert!(!format!("{gateway:?}").contains("c2VjcmV0"));
}

/// The page has the format of the file: read as a file, it has the same meaning.
#[test]
fn what_is_shown_can_be_read_again() {
    for text in [FULL, MINIMAL] {
        let shown = show(&parse(text, "q.yaml").unwrap());
        let again = show(&parse(&serde_json::to_string_pretty(&shown).unwrap(), "q.yaml").unwrap());
        assert_eq!(shown, again);
    }
}

#[test]
fn places_name_file_line_and_field() {
    let gateway = parsed(FULL);
    let line = 1 + FULL.lines().position(|line| line.contains("- address: 0.0.0.0:8883")).unwrap();
    assert_eq!(gateway.listeners[3].place.to_string(), format!("etc/q.yaml:{line} (listeners[4].address)"));
    let key = &tls(&gateway.listeners[0]).certificates[1].key_place;
    assert!(key.to_string().ends_with("(listeners[0].certificates[1].key)"), "{key}");
}

#[test]
fn files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quadrille.yaml");
    let words = |result: Result<Gateway, Diagnostics>| match result {
        Ok(_) => panic!("accepted"),
        Err(errors) => errors.to_string().replace(&path.display().to_string(), "FILE"),
    };

    assert_eq!(
        words(load(&path)),
        "FILE: cannot be read: No such file or directory (os error 2); check the path"
    );
    std::fs::write(&path, b"listeners: \xff").unwrap();
    assert_eq!(words(load(&path)), "FILE: not UTF-8 text; save it as UTF-8");
    std::fs::write(&path, "").unwrap();
    assert_eq!(words(load(&path)), "FILE:1: the file is empty; it needs at least `listeners`");
    std::fs::write(&path, MINIMAL).unwrap();
    let gateway = load(&path).unwrap();
    let chain = &tls(&gateway.listeners[0]).certificates[0].chain;
    assert_eq!(chain.path().unwrap(), &directory.path().join("chain.pem"));
    assert_eq!(gateway.drain_timeout, Duration::from_secs(30));
}
