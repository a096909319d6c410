//! Path normalization for routes and upstreams.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, curl, curl_status, document, echo_server, listener,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    /// Starts a gateway that rejects `/admin` and echoes the upstream request of others, with these further keys.
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let routes = "{path: /admin, respond: {status: 403, body: no}}, {path: /timed, upstream: web, rewrite: /}, \
                      {upstream: web}";
        let keys = format!("routes: [{routes}]{keys}");
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&document(&[listener(&pair, &keys)], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    /// Returns the status, and the target that the upstream received.
    fn send(&self, line: &str) -> (u16, String) {
        let mut client =
            Connector::new(&self.certificates).http(self.gateway.address(0)).expect("a connection");
        client.send(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes()).expect("sending");
        let response = client.response().expect("a response");
        let target = response.text().split(' ').nth(1).unwrap_or_default().to_owned();
        (response.status, target)
    }
}

#[test]
fn no_spelling_of_a_path_walks_around_its_route() {
    let site = Site::new("");
    let admin = [
        ("/admin", "403"),
        ("//admin", "403"),
        ("/x/../admin", "403"),
        ("/x/%2e%2E/admin", "403"),
        ("/./admin/", "403"),
        ("/%61dmi%6E", "403"),
        ("/x//..//admin?q", "403"),
        ("/admin;x", "400"),
        ("/x/..;/admin", "400"),
        ("/x/..%2fadmin", "400"),
        ("/x\\..\\admin", "400"),
        ("/x%5c..%5cadmin", "400"),
        ("/admin%00", "400"),
        ("/x%2%66admin", "400"),
    ];
    for client in ["--http1.1", "--http2"] {
        for (path, status) in admin {
            let arguments = [client, "--path-as-is"];
            let seen = curl_status(&site.gateway, &site.certificates, &arguments, path);
            assert_eq!(seen, status, "{client} {path}");
        }
        let seen =
            curl(&site.gateway, &site.certificates, &[client, "--path-as-is"], "/%7eu/./a%20b//c?d=//./%61");
        assert!(seen.starts_with("GET /~u/a%20b/c?d=//./%61 HTTP/1.1\r\n"), "{client}: {seen}");
    }
}

#[test]
fn a_target_is_a_path_or_has_one() {
    let site = Site::new("");
    for (line, status, target) in [
        ("GET admin HTTP/1.1", 400, ""),
        ("GET @evil/p HTTP/1.1", 400, ""),
        ("GET ?x HTTP/1.1", 400, ""),
        ("GET * HTTP/1.1", 400, ""),
        ("GET  /x HTTP/1.1", 400, ""),
        ("GET /x  HTTP/1.1", 400, ""),
        ("GET /x y HTTP/1.1", 400, ""),
        ("GET ftp://localhost/x HTTP/1.1", 400, ""),
        ("CONNECT localhost:443 HTTP/1.1", 400, ""),
        ("CONNECT /x HTTP/1.1", 501, ""),
        ("GET https://localhost/admin HTTP/1.1", 403, ""),
        ("GET https://localhost/x?y HTTP/1.1", 200, "/x?y"),
        ("GET https://localhost?y HTTP/1.1", 200, "/?y"),
        ("GET https://localhost HTTP/1.1", 200, "/"),
    ] {
        let (seen, sent) = site.send(line);
        assert_eq!(seen, status, "{line}");
        assert!(status != 200 || sent == target, "{line}: {sent}");
    }
}

#[test]
fn a_prefix_is_rewritten_without_a_second_slash() {
    let site = Site::new("");
    for (path, sent) in [("/timed", "/"), ("/timed/never", "/never"), ("/timed/?a", "/?a")] {
        assert_eq!(site.send(&format!("GET {path} HTTP/1.1")), (200, sent.to_owned()));
    }
}

/// A configuration can request normalization that is not safe for every server.
#[test]
fn how_paths_are_read_is_a_setting() {
    let kept = Site::new(", paths: {escaped_slashes: keep, parameters: keep, send: received}");
    for (path, status) in [("/x/../admin", 403), ("/x;y/%2F/..//%61", 200), ("/x/./y\\z", 200)] {
        let (seen, sent) = kept.send(&format!("GET {path} HTTP/1.1"));
        assert_eq!(seen, status, "{path}");
        assert!(status != 200 || sent == path, "{path}: {sent}");
    }
    let unchanged = Site::new(", paths: {normalize: off, merge_slashes: off}");
    assert_eq!(unchanged.send("GET /x/..//admin HTTP/1.1"), (200, "/x/..//admin".into()));
}
