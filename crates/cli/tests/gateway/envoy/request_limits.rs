//! Request limits: both reject the same requests.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
};
use crate::support::Nginx;

const MANAGER: &str = r#"
          common_http_protocol_options: { max_headers_count: 20 }
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - match: { prefix: /large/ }
                route: { cluster: app, prefix_rewrite: / }
                typed_per_filter_config:
                  envoy.filters.http.buffer: { "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, buffer: { max_request_bytes: 100000 } }
              - match: { prefix: /any/ }
                route: { cluster: app, prefix_rewrite: / }
                typed_per_filter_config:
                  envoy.filters.http.buffer: { "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true }
              - { match: { prefix: / }, route: { cluster: app } }
          http_filters:
          - name: envoy.filters.http.buffer
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 10000 }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Path, body length, number of headers, and status.
const REQUESTS: [(&str, usize, usize, &str); 8] = [
    ("/a", 9_000, 0, "201"),
    ("/a", 11_000, 0, "413"),
    ("/large/b", 90_000, 0, "201"),
    ("/large/b", 110_000, 0, "413"),
    ("/any/c", 110_000, 0, "201"),
    ("/d", 0, 10, "201"),
    ("/d", 0, 30, "431"),
    ("/e", 5, 0, "201"),
];

fn text(site: &Nginx) -> String {
    with_ports(&bootstrap(MANAGER, ""), &[("UPSTREAM", site.address().port())])
}

fn put(
    site: &Nginx,
    port: u16,
    (path, length, count, _): (&str, usize, usize, &str),
    chunked: bool,
) -> String {
    let name = path.rsplit('/').next().expect("a name");
    // Both create the file.
    let _ = std::fs::remove_file(site.file(name));
    let body = site.file("body");
    std::fs::write(&body, "a".repeat(length)).expect("a file");
    let body = body.display().to_string();
    let headers: Vec<String> = (0..count).map(|number| format!("x-{number}: a")).collect();
    let mut arguments = vec!["--upload-file", &body, "-H", "Expect:"];
    if chunked {
        arguments.extend(["-H", "Transfer-Encoding: chunked"]);
    }
    arguments.extend(headers.iter().flat_map(|header| ["-H", header]));
    ask("http", port, path, &arguments)[0].clone()
}

/// Sends a body with or without a length; curl does not send an empty body in chunks.
fn ways(length: usize) -> Vec<bool> {
    if length > 0 { vec![false, true] } else { vec![false] }
}

#[test]
fn what_is_too_large_is_refused() {
    let site = Nginx::new("dav_methods PUT;");
    let (gateway, _file) = serving(&text(&site));
    for request in REQUESTS {
        for chunked in ways(request.1) {
            assert_eq!(put(&site, gateway.port(), request, chunked), request.3, "{request:?} {chunked}");
        }
    }
}

#[test]
fn both_refuse_what_is_too_large() {
    let site = Nginx::new("dav_methods PUT;");
    let Some(both) = Both::start(&text(&site)) else { return };
    let mut differences = Vec::new();
    for request in REQUESTS {
        for chunked in ways(request.1) {
            let [ours, theirs] = both.ports().map(|port| vec![put(&site, port, request, chunked)]);
            differences.extend(difference(&format!("{request:?} {chunked}"), &ours, &theirs));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
