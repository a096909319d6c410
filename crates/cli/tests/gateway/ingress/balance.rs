//! Selection of servers: canaries, policies and session affinity.

use super::{Cluster, ingress, location, server, service};
use crate::support::comparison::{Request, exchange, gets, header, outcome};

#[test]
fn canaries() {
    let mut requests: Vec<Request<'_>> = Vec::new();
    for headers in [
        "",
        "X-Canary: always\r\n",
        "X-Canary: never\r\n",
        "X-Canary: x\r\n",
        "X-Canary: never\r\nCookie: canary=always\r\n",
    ] {
        requests.push(("GET", "header.example", "/x", headers));
        requests.push(("GET", "regex.example", "/long/x", headers));
        requests.push(("GET", "regex.example", "/lo", headers));
    }
    for headers in
        ["X-Canary: beta\r\n", "X-Canary: always\r\n", "X-Canary: eu-west-1\r\n", "X-Canary: eu-\r\n"]
    {
        requests.push(("GET", "value.example", "/x", headers));
        requests.push(("GET", "pattern.example", "/x", headers));
    }
    for headers in
        ["", "Cookie: a=1; canary=always\r\n", "Cookie: canary=never\r\n", "Cookie: canary=maybe\r\n"]
    {
        requests.push(("GET", "cookie.example", "/x", headers));
    }
    let both = |host: &str, name: &str, annotations: &str| {
        let main = ingress(name, "", host, &[("/", "Prefix", "a")]);
        let canary = ingress(
            &format!("{name}-canary"),
            &format!("canary: \"true\"\n{annotations}"),
            host,
            &[("/", "Prefix", "errors")],
        );
        main + &canary
    };
    let objects = [
        both("header.example", "header", "canary-by-header: X-Canary\ncanary-by-cookie: canary"),
        both("value.example", "value", "canary-by-header: X-Canary\ncanary-by-header-value: beta"),
        both(
            "pattern.example",
            "pattern",
            "canary-by-header: X-Canary\ncanary-by-header-pattern: \"^eu-.+\"",
        ),
        both("cookie.example", "cookie", "canary-by-cookie: canary"),
        ingress(
            "regex",
            "use-regex: \"true\"",
            "regex.example",
            &[("/long", "ImplementationSpecific", "a"), ("/lo", "ImplementationSpecific", "a")],
        ),
        ingress(
            "regex-canary",
            "canary: \"true\"\ncanary-by-header: X-Canary",
            "regex.example",
            &[("/lo", "ImplementationSpecific", "errors")],
        ),
    ];
    let maps = "map $cookie_canary $by_cookie { default <a>; always <errors>; }
        map $http_x_canary $by_header { default $by_cookie; always <errors>; never <a>; }
        map $http_x_canary $by_value { default <a>; beta <errors>; }
        map $http_x_canary $by_pattern { default <a>; ~^eu-.+ <errors>; }
        map $http_x_canary $by_regex { default <a>; always <errors>; }";
    let at = |host: &str, to: &str| {
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name {host}; {} }}",
            location("/", &format!("proxy_pass http://{to};"))
        )
    };
    let regex = [
        location("~* \"^/long\"", "proxy_pass http://<a>;"),
        location("~* \"^/lo\"", "proxy_pass http://$by_regex;"),
    ];
    let http = [
        maps.to_owned(),
        server("regex.example", &regex.concat()),
        at("header.example", "$by_header"),
        at("value.example", "$by_value"),
        at("pattern.example", "$by_pattern"),
        at("cookie.example", "$by_cookie"),
    ];
    Cluster::new().compare(&objects.concat(), &http.concat(), &requests, &[]);
}

#[test]
fn canary_weights() {
    let all = gets("all.example", &["/x"; 8]);
    let none = gets("none.example", &["/x"; 8]);
    let both = |name: &str, weight: &str| {
        let host = format!("{name}.example");
        let canary = format!("canary: \"true\"\ncanary-weight: \"{weight}\"\ncanary-weight-total: \"10\"");
        ingress(name, "", &host, &[("/", "Prefix", "errors")])
            + &ingress(&format!("{name}-canary"), &canary, &host, &[("/", "Prefix", "b")])
    };
    let objects = both("all", "10") + &both("none", "0") + &both("some", "5");
    let at = |host: &str, to: &str| {
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name {host}; {} }}",
            location("/", &format!("proxy_pass http://{to};"))
        )
    };
    let http = [server("x.example", ""), at("all.example", "<b>"), at("none.example", "<errors>")];
    let cluster = Cluster::new();
    cluster.compare(&objects, &http.concat(), &[all, none].concat(), &[]);
    let served = cluster.gateway(&objects);
    let statuses: Vec<_> =
        (0..200).map(|_| outcome(served.http(), &("GET", "some.example", "/", "")).status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&500), "{statuses:?}");
}

#[test]
fn load_balancing() {
    let objects = [
        ingress("header", "upstream-hash-by: $http_x_user", "a.example", &[("/header", "Exact", "two")]),
        ingress("client", "upstream-hash-by: $remote_addr", "a.example", &[("/client", "Exact", "two")]),
        ingress("turns", "load-balance: round_robin", "a.example", &[("/turns", "Exact", "two")]),
        ingress("least", "load-balance: ewma", "a.example", &[("/least", "Exact", "two")]),
        two(),
    ];
    let cluster = Cluster::new();
    let served = cluster.gateway(
        &objects
            .concat()
            .replace("<a>", &cluster.a.port().to_string())
            .replace("<errors>", &cluster.errors.port().to_string()),
    );
    let statuses = |path: &str, headers: &str| -> Vec<u16> {
        let mut found: Vec<_> =
            (0..16).map(|_| outcome(served.http(), &("GET", "a.example", path, headers)).status).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    assert_eq!(statuses("/turns", ""), [200, 500], "{}", served.yaml);
    for user in ["one", "two", "three"] {
        assert_eq!(statuses("/header", &format!("X-User: {user}\r\n")).len(), 1, "{}", served.yaml);
    }
    assert_eq!(statuses("/client", "").len(), 1, "{}", served.yaml);
    assert!(served.yaml.contains("balance: least_request"), "{}", served.yaml);
}

/// Returns a Service with two endpoints, which respond with different statuses.
fn two() -> String {
    let slice = |name: &str, port: &str| {
        format!(
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nmetadata: {{ name: {name}, namespace: shop, \
             labels: {{ kubernetes.io/service-name: two }} }}\nports: [{{ name: http, port: {port} }}]\nendpoints: [{{ addresses: [127.0.0.1] }}]\n"
        )
    };
    service("two", &[]) + &slice("two-a", "<a>") + &slice("two-errors", "<errors>")
}

#[test]
fn session_affinity() {
    let objects = [
        ingress(
            "sticky",
            "affinity: cookie\nsession-cookie-name: route\nsession-cookie-max-age: \"3600\"\nsession-cookie-path: /sticky",
            "a.example",
            &[("/sticky", "Exact", "two")],
        ),
        ingress("default", "affinity: cookie", "a.example", &[("/default", "Exact", "two")]),
        two(),
    ];
    let cluster = Cluster::new();
    let served = cluster.gateway(
        &objects
            .concat()
            .replace("<a>", &cluster.a.port().to_string())
            .replace("<errors>", &cluster.errors.port().to_string()),
    );
    let set = |path: &str| {
        let response = exchange(served.http(), &("GET", "a.example", path, ""));
        header(response.split("\r\n\r\n").next().unwrap_or_default(), "set-cookie").expect("a cookie")
    };
    let cookie = set("/sticky");
    assert!(
        cookie.starts_with("route=") && cookie.contains("Max-Age=3600") && cookie.contains("Path=/sticky"),
        "{cookie}"
    );
    assert!(set("/default").starts_with("INGRESSCOOKIE="), "{}", served.yaml);
    let kept = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap_or_default());
    let mut statuses: Vec<_> =
        (0..16).map(|_| outcome(served.http(), &("GET", "a.example", "/sticky", &kept)).status).collect();
    statuses.dedup();
    assert_eq!(statuses.len(), 1, "{statuses:?}");
}
