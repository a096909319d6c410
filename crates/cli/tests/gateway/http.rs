//! HTTP through the gateway to nginx, from HTTP/1.1 and HTTP/2 clients.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually, listener,
};

const CLIENTS: [&str; 2] = ["--http1.1", "--http2"];

/// Returns the request as received by the upstream.
const ECHO: &str = r#"location /echo {
    return 200 "$request_method $request_uri $server_protocol host=$http_host for=$http_x_forwarded_for \
proto=$http_x_forwarded_proto forwarded_host=$http_x_forwarded_host connection=$http_connection";
}"#;

fn before(nginx: &Nginx) -> (Certificates, Gateway) {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(
        &certificates.ecdsa("P-256", &["localhost"]),
        &["--upstream", &nginx.address().to_string()],
    );
    (certificates, gateway)
}

#[test]
fn every_method_arrives_with_the_client_announced() {
    let nginx = Nginx::new(&ECHO.replace("\\\n", ""));
    let (certificates, gateway) = before(&nginx);
    let port = gateway.port();
    for client in CLIENTS {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
            let seen = curl(&gateway, &certificates, &[client, "-X", method], "/echo/a%20b?c=d&e");
            assert_eq!(
                seen,
                format!(
                    "{method} /echo/a%20b?c=d&e HTTP/1.1 host=localhost:{port} for=127.0.0.1 proto=https \
                     forwarded_host=localhost:{port} connection="
                ),
                "{client}"
            );
        }
    }
}

#[test]
fn what_a_client_claims_about_itself_is_replaced_by_what_is_known() {
    let nginx = Nginx::new(&ECHO.replace("\\\n", ""));
    let (certificates, gateway) = before(&nginx);
    for client in CLIENTS {
        let claims = ["-H", "X-Forwarded-For: 192.0.2.1", "-H", "X-Forwarded-Proto: http", "-H"];
        let arguments = [&[client], &claims[..], &["X-Forwarded-Host: elsewhere"]].concat();
        let seen = curl(&gateway, &certificates, &arguments, "/echo");
        assert!(seen.contains("for=127.0.0.1 proto=https forwarded_host=localhost:"), "{seen}");
    }
    // A client must not be able to have the gateway's own headers removed.
    let arguments = ["--http1.1", "-H", "Connection: X-Forwarded-For, X-Forwarded-Proto, Host, close"];
    let seen = curl(&gateway, &certificates, &arguments, "/echo");
    assert!(seen.contains("host=localhost") && seen.contains("for=127.0.0.1 proto=https"), "{seen}");
    let arguments = ["--http1.1", "-H", "Connection: X-Mine, close", "-H", "X-Mine: 1"];
    let seen = curl(&gateway, &certificates, &arguments, "/echo");
    assert!(seen.contains("for=127.0.0.1 proto=https") && seen.ends_with("connection="), "{seen}");
}

#[test]
fn head_has_a_length_and_no_body() {
    let nginx = Nginx::new("");
    std::fs::write(nginx.file("page.txt"), "0123456789").expect("a page");
    let (certificates, gateway) = before(&nginx);
    for client in CLIENTS {
        let head = curl(&gateway, &certificates, &[client, "--head"], "/page.txt").to_ascii_lowercase();
        assert!(head.contains("content-length: 10\r\n") && !head.contains("0123456789"), "{client}: {head}");
    }
}

#[test]
fn a_connection_serves_many_requests_one_after_the_other() {
    let nginx = Nginx::new("");
    std::fs::write(nginx.file("page.txt"), "page").expect("a page");
    let (certificates, gateway) = before(&nginx);
    for client in CLIENTS {
        // Only global options apply to the second URL, not those before the first.
        let again = format!("https://localhost:{}/page.txt", gateway.port());
        let counted = "%{num_connects} ";
        let pages = curl(&gateway, &certificates, &[client, "-w", counted, &again, &again], "/page.txt");
        assert_eq!(pages, "page1 page0 page0 ", "{client}");
    }
}

#[test]
fn large_headers_pass_in_both_directions() {
    let nginx = Nginx::new(
        "large_client_header_buffers 8 64k;
         location / { add_header X-Back $http_x_large; return 200 $http_x_large; }",
    );
    let (certificates, gateway) = before(&nginx);
    let large = "x".repeat(24 * 1024);
    for client in CLIENTS {
        let both = curl(&gateway, &certificates, &[client, "-i", "-H", &format!("X-Large: {large}")], "/");
        let header = both.lines().find(|line| line.to_ascii_lowercase().starts_with("x-back: "));
        assert_eq!(
            header.map(|line| line.trim_end().len() - "X-Back: ".len()),
            Some(large.len()),
            "{client}"
        );
        assert!(both.ends_with(&format!("\n{large}")), "{client}");
    }
}

#[test]
fn chunked_bodies_pass_in_both_directions() {
    // With server-side includes, nginx does not know the length in advance.
    let nginx = Nginx::new("dav_methods PUT; ssi on; ssi_types text/plain;");
    let (certificates, gateway) = before(&nginx);
    let body = "0123456789abcdef".repeat(10_000);
    std::fs::write(certificates.path("body"), &body).expect("a body");
    let upload = certificates.path("body");
    for client in CLIENTS {
        let arguments =
            [client, "-H", "Transfer-Encoding: chunked", "-T", upload.to_str().expect("a UTF-8 path")];
        let arguments =
            if client == "--http2" { [&arguments[..1], &arguments[3..]].concat() } else { arguments.into() };
        curl(&gateway, &certificates, &arguments, "/upload.txt");
        assert_eq!(std::fs::read_to_string(nginx.file("upload.txt")).expect("the upload"), body, "{client}");
        assert!(curl(&gateway, &certificates, &[client], "/upload.txt") == body, "{client}");
        std::fs::remove_file(nginx.file("upload.txt")).expect("removing the upload");
    }
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    std::fs::write(nginx.file("upload.txt"), &body).expect("a file");
    let response = client.get("/upload.txt").expect("a response");
    assert_eq!(response.header("transfer-encoding"), Some("chunked"), "{:?}", response.headers);
    assert!(response.text() == body);
}

#[test]
fn answers_of_the_upstream_stay_as_they_are() {
    let nginx = Nginx::new(
        "if_modified_since before;
         location /moved { return 301 http://elsewhere.example/x; }
         location /teapot { return 418 short; }
         location /empty { return 204; }",
    );
    std::fs::write(nginx.file("page.txt"), "0123456789").expect("a page");
    let (certificates, gateway) = before(&nginx);
    for client in CLIENTS {
        for (path, status) in [("/moved", "301"), ("/teapot", "418"), ("/empty", "204"), ("/missing", "404")]
        {
            assert_eq!(curl_status(&gateway, &certificates, &[client], path), status, "{client} {path}");
        }
        let location =
            curl(&gateway, &certificates, &[client, "-o", "/dev/null", "-w", "%{redirect_url}"], "/moved");
        assert_eq!(location, "http://elsewhere.example/x");
        assert_eq!(curl(&gateway, &certificates, &[client, "-r", "2-4"], "/page.txt"), "234", "{client}");
        let since = ["-H", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT"];
        let arguments = [&[client], &since[..]].concat();
        assert_eq!(curl_status(&gateway, &certificates, &arguments, "/page.txt"), "304", "{client}");
    }
    assert!(gateway.metric("quadrille_requests_total", &["status=\"4xx\""]) >= 4.0, "{}", gateway.metrics());
}

#[test]
fn requests_are_routed_by_host_and_path() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("return 200 nginx;");
    let routes = "routes: [{host: www.example, respond: www}, {host: www.example, path: /api, upstream: web},
        {host: '*.shop.example', respond: shop}, {path: /teapot, respond: {status: 418, body: short}}]";
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    for client in CLIENTS {
        for (host, path, expected) in [
            ("www.example", "/", "www 200"),
            ("www.example:443", "/apis", "www 200"),
            ("WWW.EXAMPLE", "/api/x?y", "nginx 200"),
            ("a.shop.example", "/api", "shop 200"),
            ("a.b.shop.example", "/api", "No route for this host and path.\n 404"),
            ("unknown.example", "/teapot", "short 418"),
        ] {
            let host_header = format!("Host: {host}");
            let arguments = [client, "--no-fail", "-w", " %{http_code}", "-H", &host_header];
            assert_eq!(curl(&gateway, &certificates, &arguments, path), expected, "{client} {host}{path}");
        }
    }
}

#[test]
fn a_request_that_could_be_read_in_two_ways_is_refused() {
    let nginx = Nginx::new("return 200 reached;");
    let (certificates, gateway) = before(&nginx);
    let connector = Connector::new(&certificates);
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nBroken header\r\n\r\n",
    ] {
        let mut client = connector.http(gateway.address(0)).expect("a connection");
        client.send(request.as_bytes()).expect("sending");
        let status = client.response().map(|response| response.status);
        assert!(matches!(status, Ok(400) | Err(_)), "{request:?}: {status:?}");
    }
}

#[test]
fn http_1_0_needs_no_host() {
    let nginx = Nginx::new(&ECHO.replace("\\\n", ""));
    let (certificates, gateway) = before(&nginx);
    let old = ["--http1.0", "--no-alpn"];
    let seen = curl(&gateway, &certificates, &[&old[..], &["-H", "Host:"]].concat(), "/echo");
    assert!(seen.contains("for=127.0.0.1 proto=https forwarded_host= "), "{seen}");
    // Routes do not see the address that the client connected to, and HTTP/1.1 requires a host.
    assert!(seen.contains("HTTP/1.0 host= for="), "{seen}");
    let seen = curl(&gateway, &certificates, &old, "/echo");
    assert!(seen.contains("host=localhost:"), "{seen}");
}

#[test]
fn the_access_log_says_how_each_connection_was_made() {
    let certificates = Certificates::new();
    let log = certificates.path("access.log");
    let gateway = Gateway::with_flags(
        &certificates.rsa(2048, &["localhost"]),
        &["--respond", "ok", "--access-log", log.to_str().expect("a UTF-8 path")],
    );
    curl(&gateway, &certificates, &["--http2", "--tls-max", "1.2"], "/path?query");
    let mut line = String::new();
    eventually("nothing in the access log", || {
        line = std::fs::read_to_string(&log).unwrap_or_default();
        line.ends_with('\n')
    });
    for field in [
        "method=\"GET\"",
        "host=\"localhost:",
        "path=\"/path\"",
        "protocol=\"HTTP/2\"",
        "status=200",
        "bytes=2",
        "tls_version=\"TLSv1.2\"",
        "sni=\"localhost\"",
        "resumed=false",
        "handshake_us=",
        "key_us=",
        "batch=1",
    ] {
        assert!(line.contains(field), "{field} is missing in {line}");
    }
    assert!(!gateway.log().contains("request_us"), "{}", gateway.log());
}
