//! Rules that hold for all routes, and conditions on headers that the gateway sets.

use crate::support::{Connector, EchoSite, Http3Client, Pair, curl, http3::Sending};

impl EchoSite {
    /// Returns the text of a response over HTTP/1.1 and HTTP/2, and over HTTP/3 without a certificate.
    fn texts(&self, headers: &[(&str, &str)], shown: Option<&Pair>) -> Vec<String> {
        let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let mut arguments: Vec<_> = lines.iter().flat_map(|line| ["-H", line.as_str()]).collect();
        if let Some(Pair { chain, key, .. }) = shown {
            let [chain, key] = [chain, key].map(|path| path.to_str().expect("UTF-8"));
            arguments.extend(["--cert", chain, "--key", key]);
        }
        let get =
            |version| curl(&self.gateway, &self.certificates, &[&[version], &arguments[..]].concat(), "/");
        let mut texts = vec![get("--http1.1"), get("--http2")];
        if shown.is_none() {
            let mut client = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
            texts.push(client.exchange(&Sending { method: "GET", path: "/", headers, body: b"" }).text());
        }
        texts
    }
}

#[test]
fn a_rule_denies_on_every_path() {
    let site = EchoSite::new(
        "routes: [{path: /api/x, respond: x}, {path_exact: /exact, respond: e}, {path: /, respond: ok}],
         rules: [{when: {headers: [{name: user-agent, prefix: SQLMap, ignore_case: on}]}, deny: 403},
                 {when: {path: /internal, methods: [POST, PUT]}, deny: 404},
                 {when: {path_regex: '/.*[.]php'}, deny: 410},
                 {when: {path_exact: /token, headers: [{name: x-token, present: off}]}, deny: 401}]",
    );
    for path in ["/", "/api/x", "/api/x/y?z", "/exact"] {
        assert_eq!(site.statuses("GET", path, &[("user-agent", "sqlmap/1")]), ["403"; 3], "{path}");
        assert_eq!(site.statuses("GET", path, &[("user-agent", "other")]), ["200"; 3], "{path}");
    }
    for (method, path, status) in [
        ("POST", "/internal", "404"),
        ("PUT", "/%69nternal/x", "404"),
        ("GET", "/internal", "200"),
        ("POST", "/internals", "200"),
        ("GET", "/a/b.php?c", "410"),
        ("GET", "/token", "401"),
        ("GET", "/token/x", "200"),
    ] {
        assert_eq!(site.statuses(method, path, &[("user-agent", "other")]), [status; 3], "{method} {path}");
    }
    assert_eq!(site.statuses("GET", "/token", &[("x-token", "1")]), ["200"; 3]);
    // One of several lines suffices.
    let head = "User-Agent: good\r\nUser-Agent: SQLMap/1\r\n";
    let connector = Connector::new(&site.certificates);
    assert_eq!(connector.get(site.gateway.address(0), "/api/x", head).status, 403);
    assert!(site.gateway.metric("quadrille_access_denied_total", &["what=\"request\""]) > 0.0);
}

/// A rule precedes limits and passwords: what it denies is not counted, and no password is requested.
#[test]
fn rules_precede_limits_and_passwords() {
    let site = EchoSite::new(
        "respond: ok, rate_limits: [{rate: 3/240h}],
         rules: [{when: {headers: [{name: x-bad}]}, deny: 403}, {when: {headers: [{name: x-user}]}, deny: 418}],
         basic_auth: {users: 'ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci', user_header: X-User}",
    );
    for _ in 0..2 {
        assert_eq!(site.statuses("GET", "/", &[("x-bad", "1")]), ["403"; 3]);
    }
    // No request names its user before it is authenticated.
    assert_eq!(site.statuses("GET", "/", &[("x-user", "root")]), ["401"; 3]);
}

#[test]
fn conditions_see_the_gateways_own_value() {
    const ROUTES: &str =
        "routes: [{headers: [{name: client-subject}], upstream: web, MORE}, {respond: public}]";
    const SET: &str = "request_headers: [{set: Client-Subject, value: '{client_certificate_subject}'}]";
    for keys in [format!("{SET}, {}", ROUTES.replace(", MORE", "")), ROUTES.replace("MORE", SET)] {
        let site = EchoSite::new(&format!("tls: {{client_auth: {{mode: optional, ca: CA}}}}, {keys}"));
        let forged = [("client-subject", "CN=root"), ("client_subject", "CN=root")];
        assert_eq!(site.texts(&forged, None), ["public"; 3], "{keys}");
        assert_eq!(site.texts(&[], None), ["public"; 3], "{keys}");
        let alice = site.certificates.ecdsa("P-256", &["alice.example"]);
        for text in site.texts(&forged, Some(&alice)) {
            assert!(text.to_ascii_lowercase().contains("client-subject: "), "{text}");
            assert!(!text.contains("root"), "{text}");
        }
    }
}

#[test]
fn conditions_see_the_gateways_forwarding_headers() {
    let site = EchoSite::new(
        "routes: [{headers: [{name: x-forwarded-proto, exact: http}], respond: plain},
                  {headers: [{name: x-real-ip}], respond: inside},
                  {headers: [{name: x-forwarded-for, exact: 127.0.0.1}], upstream: web}, {respond: elsewhere}]",
    );
    let forged = [("x-forwarded-proto", "http"), ("x-real-ip", "10.0.0.1"), ("x-forwarded-for", "10.0.0.1")];
    for text in site.texts(&forged, None) {
        let text = text.to_ascii_lowercase();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("x-")).map(str::trim).collect();
        for line in ["x-forwarded-for: 127.0.0.1", "x-forwarded-proto: https", "x-forwarded-host: localhost"]
        {
            assert_eq!(lines.iter().filter(|known| known.starts_with(line)).count(), 1, "{line}: {text}");
        }
        assert!(!text.contains("10.0.0.1"), "{text}");
    }
}

/// A header that the route sets to a fixed text is still a condition on the client's value.
#[test]
fn a_route_may_replace_the_header_that_it_matches() {
    let site = EchoSite::new(
        "routes: [{headers: [{name: x-canary, exact: 'yes'}], upstream: web,
                   request_headers: [{set: X-Canary, value: matched}]}, {respond: stable}]",
    );
    for text in site.texts(&[("x-canary", "yes")], None) {
        assert!(text.to_ascii_lowercase().contains("x-canary: matched"), "{text}");
    }
    assert_eq!(site.texts(&[("x-canary", "no")], None), ["stable"; 3]);
}

/// Servers may read `X_Debug` as `X-Debug`, which the condition on it would not see.
#[test]
fn conditions_see_every_header_that_servers_read_as_theirs() {
    let site = EchoSite::new(
        "rules: [{when: {headers: [{name: x-debug}]}, deny: 403},
                 {when: {path: /token, headers: [{name: x-token, present: off}]}, deny: 401}],
         routes: [{path: /canary, headers: [{name: x-canary-user}], respond: canary},
                  {path: /limited, upstream: web, rate_limits: [{rate: 1000/s, by: header X-Api-Key}]},
                  {path: /, upstream: web}]",
    );
    let text = |path: &str, headers: &[(&str, &str)]| {
        let mut client = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
        let third = client.exchange(&Sending { method: "GET", path, headers, body: b"" }).text();
        let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let arguments: Vec<_> = lines.iter().flat_map(|line| ["-H", line.as_str()]).collect();
        let get =
            |version| curl(&site.gateway, &site.certificates, &[&[version], &arguments[..]].concat(), path);
        [get("--http1.1"), get("--http2"), third]
    };
    let forged = [
        ("x_debug", "forged"),
        ("x_canary_user", "forged"),
        ("x-canary_user", "forged"),
        ("x_api-key", "forged"),
    ];
    for path in ["/", "/canary", "/limited"] {
        for seen in text(path, &[&forged[..], &[("x_other", "kept")]].concat()) {
            assert!(seen.contains("x_other: kept"), "{path}: {seen}");
            assert!(!seen.contains("forged"), "{path}: {seen}");
        }
    }
    assert_eq!(site.statuses("GET", "/", &[("x-debug", "1")]), ["403"; 3]);
    assert_eq!(site.statuses("GET", "/token", &[("x_token", "1")]), ["401"; 3]);
    assert_eq!(site.statuses("GET", "/token", &[("x-token", "1"), ("x_token", "2")]), ["200"; 3]);
}
