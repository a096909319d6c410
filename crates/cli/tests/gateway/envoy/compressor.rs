//! Compressors: the same responses are compressed, in the same codings, as by the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
};
use crate::support::{Nginx, output};
use std::process::Command;

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - match: { prefix: /plain/ }
                route: { cluster: app, prefix_rewrite: / }
                typed_per_filter_config:
                  gzip: { "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.CompressorPerRoute, disabled: true }
                  brotli: { "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.CompressorPerRoute, disabled: true }
              - { match: { prefix: / }, route: { cluster: app } }
          http_filters:
          - name: gzip
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor
              response_direction_config: { common_config: { min_content_length: 200, content_type: [ text/html, application/json ] } }
              compressor_library:
                name: gzip
                typed_config: { "@type": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip }
          - name: brotli
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor
              response_direction_config: { common_config: { min_content_length: 200, content_type: [ text/html, application/json ] } }
              compressor_library:
                name: brotli
                typed_config: { "@type": type.googleapis.com/envoy.extensions.compression.brotli.compressor.v3.Brotli }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Requests with their `Accept-Encoding` and the expected coding.
const REQUESTS: &[(&str, &[&str], &str)] = &[
    ("/page.html", &["-H", "accept-encoding: gzip"], "gzip"),
    ("/page.html", &["-H", "accept-encoding: br"], "br"),
    ("/page.html", &["-H", "accept-encoding: br;q=0.5, gzip;q=0.9"], "gzip"),
    ("/page.html", &["-H", "accept-encoding: br;q=0.9, gzip;q=0.5"], "br"),
    ("/page.html", &["-H", "accept-encoding: gzip;q=0, br"], "br"),
    ("/page.html", &["-H", "accept-encoding: gzip, identity;q=0.5"], "gzip"),
    ("/page.html", &["-H", "accept-encoding: gzip", "-H", "cookie: session=1"], "gzip"),
    ("/page.html", &["-H", "accept-encoding: identity"], ""),
    ("/page.html", &["-H", "accept-encoding: zstd"], ""),
    ("/page.html", &[], ""),
    ("/data.json", &["-H", "accept-encoding: gzip"], "gzip"),
    ("/short.html", &["-H", "accept-encoding: gzip"], ""),
    ("/image.png", &["-H", "accept-encoding: gzip"], ""),
    ("/plain/page.html", &["-H", "accept-encoding: gzip"], ""),
    ("/nothing.html", &["-H", "accept-encoding: gzip"], ""),
];

/// A partial response is not compressed (docs/guide/compression.md); Envoy compresses it and keeps `Content-Range`.
const PART: (&str, &[&str], &str) =
    ("/page.html", &["-H", "accept-encoding: gzip", "-H", "range: bytes=0-999"], "");

/// Starts a server with these files.
fn site() -> Nginx {
    let nginx = Nginx::new("types { text/html html; application/json json; image/png png; }");
    for (name, length) in [("page.html", 8000), ("data.json", 3000), ("short.html", 100), ("image.png", 5000)]
    {
        let text: String = (0..length / 10).map(|line| format!("line {line:04}\n")).collect();
        std::fs::write(nginx.file(name), text).expect("a file");
    }
    nginx
}

fn text(site: &Nginx) -> String {
    with_ports(&bootstrap(MANAGER, ""), &[("UPSTREAM", site.address().port())])
}

/// Returns the status, the coding, and the decoded body.
fn answer(port: u16, path: &str, arguments: &[&str]) -> [String; 3] {
    let answer = ask("http", port, path, arguments);
    let coding = answer.iter().find_map(|line| line.strip_prefix("content-encoding: ")).unwrap_or_default();
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "300"]).args(arguments);
    // curl decodes with `--compressed`, and sends the given `Accept-Encoding`.
    if !coding.is_empty() {
        command.arg("--compressed");
    }
    let (_, body) = output(command.arg(format!("http://127.0.0.1:{port}{path}")));
    [answer[0].clone(), coding.to_owned(), body]
}

#[test]
fn answers_are_compressed() {
    let site = site();
    let (gateway, _file) = serving(&text(&site));
    let page = std::fs::read_to_string(site.file("page.html")).expect("a file");
    for (path, arguments, expected) in REQUESTS.iter().chain([&PART]) {
        let [_, coding, body] = answer(gateway.port(), path, arguments);
        assert_eq!(coding, *expected, "{path} {arguments:?}");
        if path.ends_with("/page.html") && arguments != &PART.1 {
            assert_eq!(body, page, "{path} {arguments:?}");
        }
    }
}

#[test]
fn both_compress_the_same_answers() {
    let site = site();
    let Some(both) = Both::start(&text(&site)) else { return };
    for (path, arguments, _) in REQUESTS {
        let [ours, theirs] = both.ports().map(|port| answer(port, path, arguments));
        assert_eq!(ours, theirs, "{path} {arguments:?}");
    }
}
