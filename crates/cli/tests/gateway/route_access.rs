//! Access control of routes, CORS, faults, and the actions of rules.

use crate::support::{
    EchoSite, Pair, TokenKey, curl, grpc_authorization, http_authorization, jwks, seconds_from_now,
};

use serde_json::json;

impl EchoSite {
    /// Returns heads and bodies over HTTP/1.1 and HTTP/2, in lower case, with this client certificate.
    fn heads_and_bodies(&self, shown: Option<&Pair>, arguments: &[&str], path: &str) -> [String; 2] {
        let mut all = vec!["--include", "--no-fail"];
        if let Some(Pair { chain, key, .. }) = shown {
            let [chain, key] = [chain, key].map(|path| path.to_str().expect("UTF-8"));
            all.extend(["--cert", chain, "--key", key]);
        }
        all.extend(arguments);
        ["--http1.1", "--http2"].map(|version| {
            let text = curl(&self.gateway, &self.certificates, &[&[version], &all[..]].concat(), path);
            text.to_ascii_lowercase()
        })
    }
}

#[test]
fn a_route_allows_clients() {
    let site = EchoSite::new(
        "routes: [{path: /inside, clients: {allow: [10.0.0.0/8]}, respond: in},
          {path: /outside, clients: {deny: [127.0.0.0/8]}, upstream: web},
          {path: /both, clients: {allow: [127.0.0.0/8], deny: [10.0.0.0/8]}, respond: ok}, {respond: ok}]",
    );
    for (path, status) in [("/inside/x", "403"), ("/outside", "403"), ("/both", "200"), ("/", "200")] {
        assert_eq!(site.statuses("GET", path, &[]), [status; 3], "{path}");
    }
    for text in site.heads_and_bodies(None, &[], "/inside") {
        assert!(text.contains("this client address is not allowed here."), "{text}");
    }
    assert!(site.gateway.metric("quadrille_access_denied_total", &["what=\"request\""]) >= 8.0);
}

#[test]
fn a_route_requires_a_certificate() {
    let site = EchoSite::new(
        "tls: {client_auth: {mode: optional, ca: CA}},
         routes: [{path: /any, client_auth: required, respond: ok},
          {path: /named, client_auth: {names: [alice.example, '*.staff.example']}, respond: ok}, {respond: open}]",
    );
    for path in ["/any", "/named/x"] {
        assert_eq!(site.statuses("GET", path, &[]), ["403"; 3], "{path}");
        for text in site.heads_and_bodies(None, &[], path) {
            assert!(text.contains("a client certificate is required."), "{text}");
        }
    }
    assert_eq!(site.statuses("GET", "/", &[]), ["200"; 3]);
    for (name, named) in
        [("alice.example", " 200"), ("bob.staff.example", " 200"), ("mallory.example", " 403")]
    {
        let pair = site.certificates.ecdsa("P-256", &[name]);
        for text in site.heads_and_bodies(Some(&pair), &[], "/any") {
            assert!(text.lines().next().is_some_and(|line| line.contains(" 200")), "{text}");
        }
        for text in site.heads_and_bodies(Some(&pair), &[], "/named") {
            assert!(text.lines().next().is_some_and(|line| line.contains(named)), "{name}: {text}");
            let words = "this client certificate is not allowed here.";
            assert_eq!(text.contains(words), named == " 403", "{name}: {text}");
        }
    }
}

#[test]
fn pages_of_other_origins_have_access() {
    let site = EchoSite::new(
        "routes: [{path: /api, upstream: web, cors: {origins: ['https://*.example', 'http://x.test'], methods: [PUT],
           headers: [X-A, Content-Type], expose: [ETag], max_age: 1h, credentials: on}},
          {path: /private, respond: ok, basic_auth: {users: 'ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci'},
           cors: {origins: ['https://a.example']}},
          {path: /open, respond: ok, cors: {origins: ['*']}}]",
    );
    let preflight = ["-X", "OPTIONS", "-H", "access-control-request-method: PUT", "-H"];
    for text in
        site.heads_and_bodies(None, &[&preflight[..], &["origin: https://a.example"]].concat(), "/api")
    {
        for line in [
            "access-control-allow-origin: https://a.example",
            "access-control-allow-methods: put",
            "access-control-allow-headers: x-a, content-type",
            "access-control-max-age: 3600",
            "access-control-allow-credentials: true",
        ] {
            assert!(text.contains(&format!("{line}\r\n")), "{line}: {text}");
        }
    }
    // Preflight requests carry no password.
    for text in
        site.heads_and_bodies(None, &[&preflight[..], &["origin: https://a.example"]].concat(), "/private")
    {
        assert!(text.contains("access-control-allow-origin: https://a.example\r\n"), "{text}");
    }
    assert_eq!(site.statuses("GET", "/private", &[("origin", "https://a.example")]), ["401"; 3]);
    assert_eq!(site.statuses("OPTIONS", "/private", &[("origin", "https://a.example")]), ["401"; 3]);
    for text in site.heads_and_bodies(None, &["-H", "origin: http://x.test"], "/api") {
        assert!(text.contains("access-control-expose-headers: etag\r\n"), "{text}");
    }
    for origin in ["origin: https://a.evil", "origin: https://example"] {
        for text in site.heads_and_bodies(None, &[&preflight[..], &[origin]].concat(), "/api") {
            assert!(!text.contains("access-control-allow-origin"), "{text}");
        }
    }
    for text in site.heads_and_bodies(None, &["-H", "origin: null"], "/open") {
        assert!(text.contains("access-control-allow-origin: null\r\n"), "{text}");
    }
}

#[test]
fn faults_are_injected() {
    let site = EchoSite::new(
        "routes: [{path: /abort, upstream: web, fault: {abort: 503}}, {path: /delay, respond: ok, fault: {delay: 10ms}},
          {path: /seldom, respond: ok, fault: {abort: 503, abort_percent: 0.0001}}]",
    );
    assert_eq!(site.statuses("GET", "/abort/x", &[]), ["503"; 3]);
    assert_eq!(site.statuses("GET", "/delay", &[]), ["200"; 3]);
    assert_eq!(site.statuses("GET", "/seldom", &[]), ["200"; 3]);
}

#[test]
fn rules_have_other_actions() {
    let site = EchoSite::new(
        "rules: [{when: {path: /beta}, request_headers: [{set: X-Beta, value: '{host}'}, {remove: X-Gone}]},
          {when: {headers: [{name: x-beta}], queries: [{name: stop}]}, respond: {status: 418, body: teapot}},
          {when: {path_regex: '/old/(.*)'}, redirect: {path: '/new/{1}', port: 1}},
          {when: {cookies: [{name: bad, exact: 'yes'}]}, deny: 410},
          {when: {host: [h.example, '*.i.example']}, respond: host},
          {when: {path: /limited, methods: [POST]}, rate_limits: [{rate: 1/240h, by: all}]}],
         routes: [{path: /beta/seen, headers: [{name: x-beta, exact: localhost}], respond: seen}, {path: /beta, upstream: web},
          {respond: ok}]",
    );
    for text in site.heads_and_bodies(None, &["-H", "x-gone: 1", "-H", "x_beta: forged"], "/beta") {
        assert!(text.contains("x-beta: localhost\r\n"), "{text}");
        assert!(!text.contains("x-gone") && !text.contains("forged"), "{text}");
    }
    for text in site.heads_and_bodies(None, &["-H", "x-beta: forged"], "/beta/seen") {
        assert!(text.ends_with("seen"), "{text}");
    }
    for text in site.heads_and_bodies(None, &[], "/beta?stop") {
        assert!(text.contains(" 418") && text.ends_with("teapot"), "{text}");
        assert!(text.contains("content-type: text/plain; charset=utf-8\r\n"), "{text}");
    }
    assert_eq!(site.statuses("GET", "/?stop", &[]), ["200"; 3], "the header is not set");
    for text in site.heads_and_bodies(None, &[], "/old/a/b?q") {
        assert!(text.contains("location: https://localhost:1/new/a/b?q\r\n"), "{text}");
        assert!(text.contains(" 301"), "{text}");
    }
    for host in ["h.example", "www.i.example"] {
        for text in site.heads_and_bodies(None, &["-H", &format!("host: {host}")], "/") {
            assert!(text.ends_with("host"), "{text}");
        }
    }
    // One of several cookies of a name suffices.
    for cookies in ["bad=yes", "bad=no; bad=yes"] {
        assert_eq!(site.statuses("GET", "/x", &[("cookie", cookies)]), ["410"; 3], "{cookies}");
    }
    // HTTP/3 is first.
    assert_eq!(site.statuses("POST", "/limited", &[]), ["429", "429", "200"]);
    assert_eq!(site.statuses("GET", "/limited", &[]), ["200"; 3]);
}

#[test]
fn a_token_is_required() {
    let (key, other) = (TokenKey::p256("one"), TokenKey::p256("one"));
    let jwt = format!(
        "jwt: {{issuer: me, audiences: [shop], keys: '{}', cookie: session,
          claim_headers: {{X-User: sub, X-Plan: customer.plan}}}}",
        jwks(&[&key])
    );
    let claims = |audience: &str| {
        let expiry = seconds_from_now(3600);
        json!({ "iss": "me", "aud": audience, "sub": "ann", "customer": { "plan": "gold" }, "exp": expiry })
    };
    let good = key.token("ES256", &claims("shop"));
    for keys in [
        format!("{jwt}, routes: [{{path: /free, jwt: off, upstream: web}}, {{upstream: web}}]"),
        format!("routes: [{{path: /free, upstream: web}}, {{upstream: web, {jwt}}}]"),
    ] {
        let site = EchoSite::new(&keys);
        let with = |token: &str| site.statuses("GET", "/a", &[("authorization", &format!("Bearer {token}"))]);
        assert_eq!(with(&good), ["200"; 3]);
        assert_eq!(with(&other.token("ES256", &claims("shop"))), ["401"; 3]);
        assert_eq!(with(&key.token("ES256", &claims("others"))), ["403"; 3]);
        assert_eq!(site.statuses("GET", "/a", &[]), ["401"; 3]);
        assert_eq!(site.statuses("GET", "/a", &[("cookie", &format!("session={good}"))]), ["200"; 3]);
        assert_eq!(site.statuses("GET", "/free", &[]), ["200"; 3]);
        let token = format!("authorization: Bearer {good}");
        for text in
            site.heads_and_bodies(None, &["-H", &token, "-H", "x-user: root", "-H", "x_plan: root"], "/a")
        {
            assert!(text.contains("x-user: ann\r\n") && text.contains("x-plan: gold\r\n"), "{text}");
            assert!(!text.contains("root") && !text.contains("bearer"), "{text}");
        }
        for text in site.heads_and_bodies(None, &["-H", "x-user: root"], "/free") {
            assert!(!text.contains("root"), "{text}");
        }
    }
}

#[test]
fn an_authorization_server_decides() {
    let authz = format!(", authz: {{servers: ['{}'], retries: 0}}", http_authorization());
    let server = "authorization: {upstream: authz, path: '/check?x=1', copy_headers: [X-User, X-Absent], client_headers: [X-Client]}";
    for keys in [
        format!("{server}, routes: [{{path: /free, authorization: off, upstream: web}}, {{upstream: web}}]"),
        format!("routes: [{{path: /free, upstream: web}}, {{upstream: web, {server}}}]"),
    ] {
        let site = EchoSite::with(&keys, &authz);
        assert_eq!(site.statuses("GET", "/a", &[]), ["401"; 3]);
        assert_eq!(site.statuses("GET", "/a", &[("x-ext-authz", "fail")]), ["503"; 3]);
        assert_eq!(site.statuses("GET", "/a", &[("x-ext-authz", "allow")]), ["200"; 3]);
        assert_eq!(site.statuses("GET", "/free/x", &[]), ["200"; 3]);
        for text in site.heads_and_bodies(None, &["-X", "PUT", "-H", "x-told: 1"], "/a?b=c") {
            assert!(
                text.contains("\r\nx-client: out\r\n") && text.contains("www-authenticate: basic\r\n"),
                "{text}"
            );
            let told = text.lines().last().expect("a body");
            assert!(told.starts_with("get /check?x=1 "), "{text}");
            for part in ["x-original-method=put", "x-told=1", "/a?b=c"] {
                assert!(told.contains(part), "{part}: {text}");
            }
        }
        let forged = [
            "-H",
            "x-ext-authz: allow",
            "-H",
            "x_user: root",
            "-H",
            "x-absent: root",
            "-H",
            "x-original-url: x",
        ];
        for text in site.heads_and_bodies(None, &forged, "/a") {
            assert!(text.contains("x-user: alice\r\n") && text.contains("\r\nx-client: in\r\n"), "{text}");
            assert!(!text.contains("root"), "{text}");
        }
        for text in site.heads_and_bodies(None, &["-H", "x-user: root"], "/free") {
            assert!(!text.contains("root"), "{text}");
        }
    }
}

/// Envoy's gRPC service; a server that fails denies, or, with `fail_open`, allows.
#[test]
fn an_authorization_server_decides_by_grpc() {
    let authz = format!(
        ", authz: {{servers: ['{}'], protocol: http2, retries: 0}}, none: {{servers: ['127.0.0.1:1'], retries: 0}}",
        grpc_authorization()
    );
    let site = EchoSite::with(
        "authorization: {upstream: authz, protocol: grpc},
         routes: [{path: /none, authorization: {upstream: none}, respond: ok},
          {path: /open, authorization: {upstream: none, fail_open: on}, respond: ok}, {respond: ok}]",
        &authz,
    );
    assert_eq!(site.statuses("GET", "/", &[("x-ext-authz", "allow")]), ["200"; 3]);
    assert_ne!(site.statuses("GET", "/", &[])[0], "200");
    assert_eq!(site.statuses("GET", "/none", &[]), ["503"; 3]);
    assert_eq!(site.statuses("GET", "/open", &[]), ["200"; 3]);
}
