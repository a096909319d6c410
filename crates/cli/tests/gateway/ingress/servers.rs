//! Servers: protocols, errors, canaries, load balancing, limits of time and size.

use super::{Cluster, ingress, ingress_with, location, map, server};
use crate::support::{
    Certificates, Nginx,
    comparison::{Request, exchange, gets},
    ports, recording_server,
};
use std::{net::TcpListener, thread};

#[test]
fn errors_of_servers() {
    let paths = ["/replaced", "/other", "/kept", "/plain"];
    let objects = [
        ingress(
            "replaced",
            "custom-http-errors: \"404,500\"",
            "a.example",
            &[("/replaced", "Exact", "errors")],
        ),
        ingress("other", "custom-http-errors: \"404\"", "a.example", &[("/other", "Exact", "errors")]),
        ingress(
            "kept",
            "custom-http-errors: \"500\"\ndisable-proxy-intercept-errors: \"true\"",
            "a.example",
            &[("/kept", "Exact", "errors")],
        ),
        ingress("plain", "", "a.example", &[("/plain", "Exact", "errors")]),
    ];
    let at = |path: &str, directives: &str| {
        location(&format!("= {path}"), &format!("{directives} proxy_pass http://<errors>;"))
    };
    let locations = [
        at("/replaced", "proxy_intercept_errors on; error_page 500 = @custom;"),
        "location @custom { internal; return 500 \"500\"; }".to_owned(),
        at("/other", "proxy_intercept_errors on; error_page 404 = @custom;"),
        at("/kept", ""),
        at("/plain", ""),
    ];
    let cluster = Cluster::new();
    let http = server("a.example", &locations.concat());
    cluster.compare(&objects.concat(), &http, &gets("a.example", &paths), &[]);
    let (nginx, served) = (Nginx::of_http(&cluster.addressed(&http)), cluster.gateway(&objects.concat()));
    for path in paths {
        let is_of_server = |address| exchange(address, &("GET", "a.example", path, "")).ends_with("bad\n");
        assert_eq!(is_of_server(nginx.address()), is_of_server(served.http()), "{path}");
    }
}

#[test]
fn default_backends() {
    let mut requests = gets("a.example", &["/empty", "/both", "/", "/rest/x"]);
    requests.extend(gets("unknown.example", &["/x"]));
    let default = "  defaultBackend: { service: { name: b, port: { name: http } } }\n";
    let objects = [
        ingress("empty", "", "a.example", &[("/empty", "Exact", "empty")]),
        ingress("both", "default-backend: a", "a.example", &[("/both", "Exact", "empty")]),
        ingress_with("rest", "", "a.example", &[("/only", "Exact", "a")], default),
    ];
    let all = location("/", "proxy_pass http://<b>;");
    let http = [
        format!("server {{ listen 127.0.0.1:PORT default_server; {all} }}"),
        format!(
            "server {{ listen 127.0.0.1:PORT; server_name a.example; {all} location = /empty {{ return 503; }} {} }}",
            location("= /both", "proxy_pass http://<a>;")
        ),
    ];
    Cluster::new().compare(&objects.concat(), &http.concat(), &requests, &[]);
}

#[test]
fn headers_of_responses() {
    let objects = [
        ingress("web", "custom-headers: shop/headers", "a.example", &[("/", "Prefix", "a")]),
        map("ConfigMap", "headers", &[("X-Custom", "one"), ("X-Host", "$host")]),
        map(
            "ConfigMap",
            "ingress-nginx-controller",
            &[("global-allowed-response-headers", "X-Custom,X-Host"), ("add-headers", "shop/added")],
        ),
        map("ConfigMap", "added", &[("X-Added", "everywhere")]),
    ];
    let headers = "add_header X-Custom one always; add_header X-Host $host always; add_header X-Added everywhere always;";
    let locations = location("/", &format!("{headers} proxy_pass http://<a>;"));
    Cluster::new().compare(
        &objects.concat(),
        &server("a.example", &locations),
        &gets("a.example", &["/x"]),
        &["x-custom", "x-host", "x-added"],
    );
}

#[test]
fn copies_of_requests() {
    let (mirror, recorded) = recording_server();
    let objects = ingress(
        "web",
        &format!("mirror-target: \"http://{mirror}$request_uri\"\nmirror-request-body: \"on\""),
        "a.example",
        &[("/", "Prefix", "a")],
    );
    let locations = [
        location("/", "mirror /copy; mirror_request_body on; proxy_pass http://<a>;"),
        format!("location = /copy {{ internal; proxy_pass http://{mirror}$request_uri; }}"),
    ];
    let requests: [Request<'_>; 1] = [("POST", "a.example", "/x?q=1", "Content-Length: 0\r\n")];
    let cluster = Cluster::new();
    cluster.compare(&objects, &server("a.example", &locations.concat()), &requests, &[]);
    // Both have sent a copy.
    for _ in 0..2 {
        let copy = recorded.recv_timeout(crate::support::PATIENCE).expect("a copy");
        let line = String::from_utf8_lossy(&copy).lines().next().unwrap_or_default().to_owned();
        assert!(line.starts_with("POST /x?q=1 "), "{line}");
    }
}

#[test]
fn sizes_of_bodies() {
    let (small, medium, large) =
        ("Content-Length: 0\r\n", "Content-Length: 1048577\r\n", "Content-Length: 8388609\r\n");
    let requests: Vec<Request<'_>> = vec![
        ("POST", "a.example", "/default", small),
        ("POST", "a.example", "/default", medium),
        ("POST", "a.example", "/eight", small),
        ("POST", "a.example", "/eight", large),
    ];
    let objects = [
        ingress("default", "", "a.example", &[("/default", "Exact", "a")]),
        ingress(
            "eight",
            "proxy-body-size: 8m\nproxy-request-buffering: \"off\"",
            "a.example",
            &[("/eight", "Exact", "a")],
        ),
    ];
    let locations = [
        location("= /default", "client_max_body_size 1m; lingering_close off; proxy_pass http://<a>;"),
        location("= /eight", "client_max_body_size 8m; lingering_close off; proxy_pass http://<a>;"),
    ];
    Cluster::new().compare(&objects.concat(), &server("a.example", &locations.concat()), &requests, &[]);
}

#[test]
fn timeouts_of_servers() {
    let silent = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = silent.local_addr().expect("an address");
    thread::spawn(move || {
        let mut open = Vec::new();
        silent.incoming().for_each(|tcp| open.push(tcp));
    });
    let objects = ingress(
        "web",
        "proxy-read-timeout: \"1\"\nproxy-connect-timeout: \"2\"\nproxy-send-timeout: \"3\"",
        "a.example",
        &[("/", "Prefix", "silent")],
    );
    let locations = location(
        "/",
        "proxy_read_timeout 1s; proxy_connect_timeout 2s; proxy_send_timeout 3s; proxy_pass http://<silent>;",
    );
    let cluster = Cluster::new().with("silent", address);
    cluster.compare(&objects, &server("a.example", &locations), &gets("a.example", &["/x"]), &[]);
    let served = cluster.gateway(&objects);
    for expected in ["connect: 2s", "read: 1s", "write: 3s"] {
        assert!(served.yaml.contains(expected), "{}", served.yaml);
    }
}

#[test]
fn retries() {
    let mut requests = gets("a.example", &["/retried"; 4]);
    requests.extend(gets("a.example", &["/dead"; 2]));
    requests.push(("POST", "a.example", "/retried", "Content-Length: 0\r\n"));
    let objects = [
        ingress(
            "retried",
            "proxy-next-upstream: error timeout http_503",
            "a.example",
            &[("/retried", "Exact", "half")],
        ),
        ingress(
            "dead",
            "proxy-next-upstream: \"off\"\nproxy-next-upstream-tries: \"2\"",
            "a.example",
            &[("/dead", "Exact", "dead")],
        ),
    ];
    let locations = [
        location(
            "= /retried",
            "proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 3; proxy_pass http://half;",
        ),
        location("= /dead", "proxy_next_upstream off; proxy_pass http://127.0.0.1:1;"),
    ];
    let http = format!(
        "upstream half {{ server 127.0.0.1:1 max_fails=0; server <a> max_fails=0; }} {}",
        server("a.example", &locations.concat())
    );
    Cluster::new().compare(&objects.concat(), &http, &requests, &[]);
}

#[test]
fn protocols_of_servers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["backend.example"]);
    let backend = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; location / {{ return 203; }}",
            pair.chain.display(),
            pair.key.display()
        ),
    );
    let paths = ["/https", "/plain", "/old", "/fcgi"];
    let objects = [
        ingress("https", "backend-protocol: HTTPS", "a.example", &[("/https", "Exact", "secure")]),
        ingress(
            "plain",
            "backend-protocol: HTTP\nproxy-http-version: \"1.1\"",
            "a.example",
            &[("/plain", "Exact", "a")],
        ),
        ingress("old", "proxy-http-version: \"1.0\"", "a.example", &[("/old", "Exact", "a")]),
        ingress("fcgi", "backend-protocol: FCGI", "a.example", &[("/fcgi", "Exact", "a")]),
    ];
    let locations = [
        location("= /https", "proxy_pass https://<secure>;"),
        location("= /plain", "proxy_pass http://<a>;"),
        location("= /old", "proxy_pass http://<a>;"),
        "location = /fcgi { return 503; }".to_owned(),
    ];
    let cluster = Cluster::new().with("secure", backend.address());
    cluster.compare(
        &objects.concat(),
        &server("a.example", &locations.concat()),
        &gets("a.example", &paths),
        &[],
    );
    let grpc = ingress("grpc", "backend-protocol: GRPC", "a.example", &[("/", "Prefix", "a")]);
    let served = cluster.gateway(&grpc);
    assert!(served.yaml.contains("protocol: http2"), "{}", served.yaml);
}

#[test]
fn tls_to_servers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["backend.example"]);
    let own = certificates.ecdsa("P-384", &["client.example"]);
    let text = |path: &std::path::Path| std::fs::read_to_string(path).expect("a file");
    let backend = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; ssl_client_certificate {}; ssl_verify_client optional; ssl_verify_depth 3;
             location / {{ if ($ssl_client_verify = SUCCESS) {{ return 202; }} return 203; }}",
            pair.chain.display(),
            pair.key.display(),
            certificates.ca().display()
        ),
    );
    let one = |path: &'static str, annotations: &str| {
        ingress(
            &path[1..],
            &format!("backend-protocol: HTTPS\n{annotations}"),
            "a.example",
            &[(path, "Exact", "secure")],
        )
    };
    let verified = "proxy-ssl-secret: shop/backend\nproxy-ssl-verify: \"on\"\nproxy-ssl-server-name: \"on\"\nproxy-ssl-protocols: TLSv1.2 TLSv1.3";
    let objects = [
        one("/presented", &format!("{verified}\nproxy-ssl-name: backend.example")),
        one("/wrong-name", &format!("{verified}\nproxy-ssl-name: other.example")),
        one("/unverified", ""),
        map(
            "Secret",
            "backend",
            &[
                ("ca.crt", &text(&certificates.ca())),
                ("tls.crt", &text(&own.chain)),
                ("tls.key", &text(&own.key)),
            ],
        ),
    ];
    let at = |path: &str, directives: &str| {
        location(
            &format!("= {path}"),
            &format!("{directives} proxy_ssl_session_reuse off; proxy_pass https://<secure>;"),
        )
    };
    let verified = format!(
        "proxy_ssl_trusted_certificate {}; proxy_ssl_verify on; proxy_ssl_verify_depth 3; proxy_ssl_server_name on; \
         proxy_ssl_certificate {}; proxy_ssl_certificate_key {};",
        certificates.ca().display(),
        own.chain.display(),
        own.key.display()
    );
    let locations = [
        at("/presented", &format!("{verified} proxy_ssl_name backend.example;")),
        at("/wrong-name", &format!("{verified} proxy_ssl_name other.example;")),
        at("/unverified", ""),
    ];
    Cluster::new().with("secure", backend.address()).compare(
        &objects.concat(),
        &server("a.example", &locations.concat()),
        &gets("a.example", &["/presented", "/wrong-name", "/unverified"]),
        &[],
    );
}
