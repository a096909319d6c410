//! Guards: source ranges, passwords, external authentication, limits and cross-origin requests.

use super::{Cluster, ingress, location, map, server};
use crate::support::{
    comparison::{Request, USERS, exchange, outcome},
    http_authorization,
};

#[test]
fn source_ranges() {
    let paths = ["/open", "/allowed", "/other", "/denied", "/both", "/old-name"];
    let requests: Vec<Request<'_>> = paths.iter().map(|path| ("GET", "a.example", *path, "")).collect();
    let one = |path: &'static str, annotations: &str| {
        ingress(&path[1..], annotations, "a.example", &[(path, "Exact", "a")])
    };
    let objects = [
        one("/open", ""),
        one("/allowed", "allowlist-source-range: \"10.0.0.0/8,127.0.0.0/8\"\nsatisfy: all"),
        one("/other", "allowlist-source-range: 10.0.0.0/8"),
        one("/denied", "denylist-source-range: 127.0.0.1"),
        one("/both", "allowlist-source-range: 127.0.0.0/8\ndenylist-source-range: 127.0.0.1/32"),
        one("/old-name", "whitelist-source-range: 192.0.2.0/24"),
    ];
    let at =
        |path: &str, rules: &str| location(&format!("= {path}"), &format!("{rules} proxy_pass http://<a>;"));
    let locations = [
        at("/open", ""),
        at("/allowed", "allow 10.0.0.0/8; allow 127.0.0.0/8; deny all; satisfy all;"),
        at("/other", "allow 10.0.0.0/8; deny all;"),
        at("/denied", "deny 127.0.0.1;"),
        at("/both", "deny 127.0.0.1/32; allow 127.0.0.0/8; deny all;"),
        at("/old-name", "allow 192.0.2.0/24; deny all;"),
    ];
    Cluster::new().compare(&objects.concat(), &server("a.example", &locations.concat()), &requests, &[]);
}

#[test]
fn passwords() {
    const GOOD: &str = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    const BAD: &str = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
    let requests: Vec<Request<'_>> = ["/file", "/map", "/open"]
        .iter()
        .flat_map(|path| ["", GOOD, BAD].map(|headers| ("GET", "a.example", *path, headers)))
        .collect();
    let hash = USERS.trim().split_once(':').expect("a user").1;
    let objects = [
        ingress(
            "file",
            "auth-type: basic\nauth-secret: users\nauth-realm: \"Staff only\"",
            "a.example",
            &[("/file", "Exact", "a")],
        ),
        ingress(
            "map",
            "auth-type: basic\nauth-secret: shop/by-name\nauth-secret-type: auth-map\nauth-realm: Names",
            "a.example",
            &[("/map", "Exact", "a")],
        ),
        ingress("open", "", "a.example", &[("/open", "Exact", "a")]),
        map("Secret", "users", &[("auth", USERS.trim())]),
        map("Secret", "by-name", &[("alice", hash)]),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    std::fs::write(&users, USERS).expect("the users");
    let at = |path: &str, realm: &str| {
        location(
            &format!("= {path}"),
            &format!(
                "auth_basic '{realm}'; auth_basic_user_file {}; proxy_set_header Authorization ''; proxy_pass http://<a>;",
                users.display()
            ),
        )
    };
    let locations =
        [at("/file", "Staff only"), at("/map", "Names"), location("= /open", "proxy_pass http://<a>;")];
    let cluster = Cluster::new();
    cluster.compare(&objects.concat(), &server("a.example", &locations.concat()), &requests, &[]);
    let served = cluster.gateway(&objects.concat());
    let response = exchange(served.http(), &("GET", "a.example", "/file", ""));
    assert!(response.contains("Basic realm=\"Staff only\""), "{response}");
    let response = exchange(served.http(), &("GET", "a.example", "/file", GOOD));
    assert!(!response.to_ascii_lowercase().contains("authorization: basic"), "{response}");
}

#[test]
fn external_authentication() {
    let requests: Vec<Request<'_>> = ["/private", "/open"]
        .iter()
        .flat_map(|path| {
            ["", "X-Ext-Authz: allow\r\n", "X-Ext-Authz: deny\r\n"]
                .map(|headers| ("GET", "a.example", *path, headers))
        })
        .chain([("GET", "a.example", "/private", "X-Ext-Authz: allow\r\nX-User: mallory\r\n")])
        .collect();
    let authorization = http_authorization();
    let objects = [
        ingress(
            "private",
            &format!(
                "auth-url: http://{authorization}/check?x=1\nauth-response-headers: X-User, X-More\nauth-method: GET\nauth-keepalive: \"8\"\n\
                 auth-keepalive-timeout: \"30\"\nauth-always-set-cookie: \"true\"\nauth-signin: https://id.example/"
            ),
            "a.example",
            &[("/private", "Exact", "a")],
        ),
        ingress("open", "", "a.example", &[("/open", "Exact", "a")]),
    ];
    let locations = [
        location(
            "= /private",
            "auth_request /check; auth_request_set $user $upstream_http_x_user; auth_request_set $more $upstream_http_x_more;
             proxy_set_header X-User $user; proxy_set_header X-More $more; proxy_pass http://<a>;",
        ),
        format!("location = /check {{ internal; proxy_pass http://{authorization}/check?x=1; proxy_http_version 1.1; proxy_pass_request_body off; proxy_set_header Content-Length ''; }}"),
        location("= /open", "proxy_pass http://<a>;"),
    ];
    Cluster::new().compare(&objects.concat(), &server("a.example", &locations.concat()), &requests, &[]);
}

#[test]
fn authentication_by_the_host_itself() {
    let cluster = Cluster::new().with("login", http_authorization());
    let objects = [
        ingress(
            "private",
            "auth-url: \"https://$host/oauth2/auth?x=1\"",
            "a.example",
            &[("/", "Prefix", "a")],
        ),
        ingress("login", "", "a.example", &[("/oauth2", "Prefix", "login")]),
        ingress(
            "elsewhere",
            "auth-url: \"https://$host/oauth2/auth\"",
            "b.example",
            &[("/x", "Prefix", "a")],
        ),
        ingress("itself", "auth-url: \"https://$host/oauth2/auth\"", "c.example", &[("/", "Prefix", "a")]),
    ];
    let served = cluster.gateway(&objects.concat());
    let status = |host: &str, headers: &str| outcome(served.http(), &("GET", host, "/x", headers)).status;
    assert_eq!(status("a.example", ""), 401, "{}", served.yaml);
    assert_eq!(status("a.example", "X-Ext-Authz: allow\r\n"), 200, "{}", served.yaml);
    // No location of the host has the path, or the one that has it is guarded in turn.
    assert_eq!(status("b.example", "X-Ext-Authz: allow\r\n"), 503, "{}", served.yaml);
    assert_eq!(status("c.example", "X-Ext-Authz: allow\r\n"), 503, "{}", served.yaml);
}

#[test]
fn global_authentication() {
    let authorization = http_authorization();
    let url = format!("http://{authorization}/check");
    let objects = [
        ingress("private", "", "a.example", &[("/private", "Exact", "a")]),
        ingress("open", "enable-global-auth: \"false\"", "a.example", &[("/open", "Exact", "a")]),
        map("ConfigMap", "ingress-nginx-controller", &[("global-auth-url", &url)]),
    ];
    let served = Cluster::new().gateway(&objects.concat());
    let status =
        |path: &str, headers: &str| outcome(served.http(), &("GET", "a.example", path, headers)).status;
    assert_eq!(status("/private", ""), 401, "{}", served.yaml);
    assert_eq!(status("/private", "X-Ext-Authz: allow\r\n"), 200, "{}", served.yaml);
    assert_eq!(status("/open", ""), 200, "{}", served.yaml);
}

#[test]
fn limits() {
    let mut requests: Vec<Request<'_>> = Vec::new();
    for path in ["/minute", "/burst", "/second", "/free"] {
        requests.extend(std::iter::repeat_n(("GET", "a.example", path, ""), 9));
    }
    let objects = [
        ingress("minute", "limit-rpm: \"1\"", "a.example", &[("/minute", "Exact", "a")]),
        ingress(
            "burst",
            "limit-rpm: \"1\"\nlimit-burst-multiplier: \"2\"",
            "a.example",
            &[("/burst", "Exact", "a")],
        ),
        // More than the test sends in any time.
        ingress(
            "second",
            "limit-rps: \"100\"\nlimit-connections: \"5\"",
            "a.example",
            &[("/second", "Exact", "a")],
        ),
        ingress("free", "", "a.example", &[("/free", "Exact", "a")]),
    ];
    // ingress-nginx responds with 503, which the report says.
    let zones = "limit_req_zone $binary_remote_addr zone=minute:1m rate=1r/m; limit_req_zone $binary_remote_addr zone=burst:1m rate=1r/m;
        limit_req_zone $binary_remote_addr zone=second:1m rate=100r/s; limit_conn_zone $binary_remote_addr zone=active:1m;
        limit_req_status 429; limit_conn_status 429;";
    let at =
        |path: &str, limit: &str| location(&format!("= {path}"), &format!("{limit} proxy_pass http://<a>;"));
    let locations = [
        at("/minute", "limit_req zone=minute burst=5 nodelay;"),
        at("/burst", "limit_req zone=burst burst=2 nodelay;"),
        at("/second", "limit_req zone=second burst=500 nodelay; limit_conn active 5;"),
        at("/free", ""),
    ];
    let http = format!("{zones} {}", server("a.example", &locations.concat()));
    Cluster::new().compare(&objects.concat(), &http, &requests, &[]);
}

#[test]
fn cross_origin_requests() {
    const ALLOWED: &str = "Origin: https://app.example\r\n";
    const PREFLIGHT: &str = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n";
    let requests: Vec<Request<'_>> = vec![
        ("GET", "a.example", "/listed", ALLOWED),
        ("OPTIONS", "a.example", "/listed", PREFLIGHT),
        ("GET", "a.example", "/listed", "Origin: https://evil.example\r\n"),
        ("GET", "a.example", "/listed", ""),
    ];
    let objects = ingress(
        "listed",
        "enable-cors: \"true\"\ncors-allow-origin: \"https://app.example, https://*.sub.example\"\ncors-allow-methods: \"PUT, GET\"\n\
         cors-allow-headers: \"X-A, Authorization\"\ncors-expose-headers: X-B\ncors-allow-credentials: \"true\"\ncors-max-age: \"600\"",
        "a.example",
        &[("/listed", "Exact", "a")],
    );
    let always = "add_header Access-Control-Allow-Origin $allowed always; add_header Access-Control-Allow-Credentials $credentials always;
        add_header Access-Control-Expose-Headers $exposed always;";
    let locations = location(
        "= /listed",
        &format!(
            "{always} if ($request_method = OPTIONS) {{ {always} add_header Access-Control-Allow-Methods 'PUT, GET' always;
             add_header Access-Control-Allow-Headers 'X-A, Authorization' always; add_header Access-Control-Max-Age 600 always; return 200; }}
             proxy_pass http://<a>;"
        ),
    );
    let maps = "map $http_origin $allowed { default ''; ~^https://(app\\.example|[^.]+\\.sub\\.example)$ $http_origin; }
        map $allowed $credentials { default true; '' ''; } map $allowed $exposed { default X-B; '' ''; }";
    let names = [
        "access-control-allow-origin",
        "access-control-allow-credentials",
        "access-control-allow-methods",
        "access-control-allow-headers",
        "access-control-expose-headers",
        "access-control-max-age",
    ];
    let http = format!("{maps} {}", server("a.example", &locations));
    Cluster::new().compare(&objects, &http, &requests, &names);
    // With every origin, credentials are not allowed.
    let objects = ingress("all", "enable-cors: \"true\"", "a.example", &[("/", "Prefix", "a")]);
    let served = Cluster::new().gateway(&objects);
    let response = exchange(served.http(), &("OPTIONS", "a.example", "/", PREFLIGHT)).to_ascii_lowercase();
    assert!(
        response.contains("access-control-allow-methods: get, put, post, delete, patch, options"),
        "{response}"
    );
    assert!(response.contains("access-control-max-age: 1728000"), "{response}");
    assert!(!response.contains("access-control-allow-credentials"), "{response}");
}

#[test]
fn guards_that_cannot_be_done_close() {
    let one = |name: &'static str, annotations: &str| {
        ingress(name, annotations, "a.example", &[(&format!("/{name}"), "Exact", "a")])
    };
    let url = "auth-url: http://127.0.0.1:1/check";
    let objects = [
        one("digest", "auth-type: digest\nauth-secret: users"),
        one("no-secret", "auth-type: basic\nauth-secret: missing"),
        one("weak", "auth-type: basic\nauth-secret: weak"),
        one("variable", "auth-url: \"http://$host/check\""),
        one("method", &format!("{url}\nauth-method: POST")),
        one("snippet", &format!("{url}\nauth-snippet: \"proxy_set_header X-A a;\"")),
        one("set-headers", &format!("{url}\nauth-proxy-set-headers: shop/headers")),
        one("range", "allowlist-source-range: everywhere"),
        one("rate", "limit-rps: many"),
        one("server", "proxy-ssl-verify: \"on\"\nbackend-protocol: HTTPS\nproxy-ssl-secret: shop/missing"),
        one("open", ""),
        map("Secret", "weak", &[("auth", "bob:$apr1$7D5ALhiV$2RnQKzs.wB8.uhFjQoGrx.\ncarol:{SHA}x")]),
    ];
    let served = Cluster::new().gateway(&objects.concat());
    let status = |path: &str| outcome(served.http(), &("GET", "a.example", path, "")).status;
    for path in [
        "digest",
        "no-secret",
        "weak",
        "variable",
        "method",
        "snippet",
        "set-headers",
        "range",
        "rate",
        "server",
    ] {
        assert_eq!(status(&format!("/{path}")), 503, "{path}\n{}", served.yaml);
        assert!(served.report.contains(&format!("Ingress shop/{path} ")), "{}", served.report);
    }
    assert_eq!(status("/open"), 200);
    assert!(served.yaml.matches("CLOSED").count() >= 9, "{}", served.yaml);
}

#[test]
fn snippets_and_firewalls() {
    let one = |name: &'static str, annotations: &str| {
        ingress(name, annotations, "a.example", &[(&format!("/{name}"), "Exact", "a")])
    };
    let objects = [
        one("harmless", "configuration-snippet: \"more_set_headers 'X-A: 1';\""),
        one("denies", "configuration-snippet: \"deny all;\""),
        one("server", "server-snippet: \"if ($http_x) { return 403; }\""),
        one("detects", "enable-modsecurity: \"true\"\nenable-owasp-core-rules: \"true\""),
        one("blocks", "enable-modsecurity: \"true\"\nmodsecurity-snippet: \"SecRuleEngine On\""),
        one("stream", "stream-snippet: \"server { listen 8000; }\""),
    ];
    let served = Cluster::new().gateway(&objects.concat());
    for (path, expected) in [
        ("harmless", 200),
        ("denies", 503),
        ("server", 503),
        ("detects", 200),
        ("blocks", 503),
        ("stream", 503),
    ] {
        let found = outcome(served.http(), &("GET", "a.example", &format!("/{path}"), "")).status;
        assert_eq!(found, expected, "{path}\n{}", served.yaml);
    }
    for name in ["configuration-snippet", "server-snippet", "stream-snippet", "enable-modsecurity"] {
        let line = format!("does not work: nginx.ingress.kubernetes.io/{name}: ");
        assert!(served.report.contains(&line), "{name}\n{}", served.report);
    }
}
