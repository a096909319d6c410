//! The stock Envoy and Quadrille under the same istiod and agent: both serve istiod's configuration for a Gateway and
//! a VirtualService in the same way.

use super::{Mesh, routes};
use crate::{
    envoy::stock,
    support::{Nginx, ports},
};
use std::path::Path;

/// Disables the parts of istiod's configuration that the stock Envoy does not support.
const SWITCHES: [(&str, &str); 2] =
    [("PILOT_ENABLE_METADATA_EXCHANGE", "false"), ("PILOT_ENABLE_ALPN_FILTER", "false")];

const HOST: &str = "shop.example.com";

/// Paths for each route of [`routes::OBJECTS`], and others.
const PATHS: &[&str] = &[
    "/exact",
    "/exact/",
    "/exact?a=b",
    "/exactly",
    "/EXACT",
    "/method",
    "/method/of/others",
    "/re12",
    "/re",
    "/re12/x",
    "/case",
    "/CASE",
    "/Case?x",
    "/header",
    "/headers/a",
    "/query?q=1",
    "/query?q=1&q=2",
    "/query?q=2",
    "/query",
    "/query?Q=1",
    "/gone",
    "/gone/for/good?x=y",
    "/redirect",
    "/redirect/a?b=c",
    "/rewrite",
    "/rewrite/a?b=c",
    "/rewritten",
    "/changes",
    "/changes/a%20b",
    "/",
    "/?a=b",
    "//exact",
    "/a/../exact",
    "/a//b",
    "/%65xact",
    "/a;b/c",
];

const VARIANTS: &[&[&str]] = &[
    &[],
    &["--http2"],
    &["--http1.1", "-X", "POST", "-d", "a body"],
    &["-X", "PUT", "-d", ""],
    &["-I"],
    &["-H", "x-a: abc", "-H", "x-set: old", "-H", "x-gone: g"],
    &["-H", "x-a: bc", "-H", "x-b: 1"],
    &["-H", "Host: other.example"],
    &["-H", "Host: shop.example.com:9"],
];

/// Returns a gateway's responses to all requests.
fn answers(mesh: &mut Mesh, program: &Path, port: u16) -> Vec<(String, Vec<String>)> {
    mesh.start_proxy(program);
    mesh.await_answer("shop-cert", HOST, port, "/exact", "exact 200");
    mesh.await_or_show("agent.log", || mesh.get("shop-cert", HOST, port, "/").starts_with("two "));
    let requests = PATHS.iter().flat_map(|path| VARIANTS.iter().map(move |variant| (path, variant)));
    let answer = |(path, variant): (&&str, &&[&str])| {
        let mut answer = stock::ask_host("https", HOST, port, path, variant);
        // Local replies have a character set; Envoy responds without a body if there is no route.
        answer.retain(|line| !line.starts_with("content-type:"));
        match answer[0].as_str() {
            "404" => answer.truncate(1),
            // Envoy's own 201 contains the request's URI, which is also the default (RFC 9110 section 15.3.2).
            "201" => answer.retain(|line| !line.starts_with("location:")),
            _ => {}
        }
        (format!("{path} {variant:?}"), answer)
    };
    requests.map(answer).collect()
}

#[test]
fn both_serve_what_istiod_makes() {
    let Some(envoy) = stock::envoy() else { return stock::skipped() };
    let told = "$request_method $request_uri $host set=$http_x_set added=$http_x_added gone=$http_x_gone \
                attempt=$http_x_envoy_attempt_count path=$http_x_envoy_original_path";
    let [one, two] =
        ["one", "two"].map(|name| Nginx::new(&format!("location / {{ return 200 \"{name} {told}\"; }}")));
    let (https, http, absent) = (ports::free(), ports::free(), ports::free());
    let servers = [one.address().port(), two.address().port(), absent, absent];
    let objects = routes::objects(https, http, servers);
    let Some(mut mesh) = Mesh::switched(&SWITCHES, "enableAutoMtls: false", &[("shop", &objects)]) else {
        return;
    };
    mesh.secret("shop-cert", HOST);
    let ours = answers(&mut mesh, Path::new(env!("CARGO_BIN_EXE_quadrille")), https);
    assert_eq!(mesh.refused(), Vec::<String>::new());
    let theirs = answers(&mut mesh, &envoy, https);
    assert!(ours.len() >= 300, "{}", ours.len());
    let differences: Vec<_> = ours
        .iter()
        .zip(&theirs)
        .filter_map(|((what, ours), (_, theirs))| stock::difference(what, ours, theirs))
        .collect();
    assert!(differences.is_empty(), "{} of {}:\n{}", differences.len(), ours.len(), differences.join("\n"));
}
