//! Compressors: translation of one and of several, and per-route settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::model::{Compression, ContentCoding, Serve};

/// Returns a filter with this library and these fields.
fn filter(library: &str, fields: &str) -> String {
    let (package, name) = (library.to_lowercase(), library);
    format!(
        "{{ name: {package}, typed_config: {{ \"@type\": a/envoy.extensions.filters.http.compressor.v3.Compressor, \
         compressor_library: {{ name: l, typed_config: {{ \"@type\": \
         a/envoy.extensions.compression.{package}.compressor.v3.{name} }} }}, {fields} }} }}"
    )
}

/// Returns a listener with these filters, and two routes to a cluster, one of which has these settings.
fn text(filters: &[String], route: &str) -> String {
    let to = "match: { prefix: / }, route: { cluster: app }";
    with_route_config(&format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], routes: [ {{ {to} }}, {{ {to}, typed_per_filter_config: {{ \
         {route} }} }} ] }} ]"
    )) + &format!("          http_filters: [ {} ]\n", filters.join(", "))
}

/// Returns a filter with every field.
pub(super) fn all() -> String {
    const ALL: &str = "choose_first: true, response_direction_config: { common_config: { min_content_length: 100, \
                       content_type: [ text/html ], enabled: { default_value: true } } }";
    text(
        &[filter("Gzip", ALL)],
        "gzip: { \"@type\": a/envoy.extensions.filters.http.compressor.v3.CompressorPerRoute, disabled: true }",
    )
}

/// Returns the compression of the two routes.
fn compressions(filters: &[String], route: &str) -> [Option<Compression>; 2] {
    let gateway = gateway(&text(filters, route));
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    let [first, second] = &http.routes.hosts[0].routes[..] else { panic!("two routes") };
    [first, second].map(|route| route.compression.as_deref().cloned())
}

#[test]
fn several_compress_in_several_codings() {
    let common = "response_direction_config: { common_config: { min_content_length: 100, content_type: [ Text/HTML ] } }";
    let first = format!("choose_first: true, {common}");
    let filters = [filter("Gzip", common), filter("Brotli", common), filter("Zstd", &first)];
    let [found, second] = compressions(&filters, "");
    let found = found.expect("a compressor");
    assert_eq!(found.codings, [ContentCoding::Zstd, ContentCoding::Gzip, ContentCoding::Brotli]);
    assert_eq!((&found.types[..], found.minimum), (&["text/html".to_owned()][..], 100));
    assert_eq!(second, Some(found));
}

#[test]
fn what_is_not_said_is_as_in_envoy() {
    let [found, _] = compressions(&[filter("Gzip", "")], "");
    let found = found.expect("a compressor");
    assert_eq!((found.types.len(), found.minimum, found.personal), (8, 30, true));
}

#[test]
fn it_can_be_off() {
    let off =
        "response_direction_config: { common_config: { enabled: { default_value: false, runtime_key: a } } }";
    assert_eq!(compressions(&[filter("Gzip", off)], ""), [None, None]);
    for route in [
        "gzip: { \"@type\": a/envoy.extensions.filters.http.compressor.v3.CompressorPerRoute, disabled: true }",
        "my.compressor: { \"@type\": a/envoy.config.route.v3.FilterConfig, disabled: true }",
    ] {
        let [first, second] = compressions(&[filter("Gzip", "")], route);
        assert_eq!(first.expect("a compressor").codings.len(), 1);
        assert_eq!(second.expect("disabled").codings, [], "{route}");
    }
}

#[test]
fn a_library_that_is_not_known_is_refused() {
    let filter = filter("Gzip", "").replace("v3.Gzip", "v3.Lzma");
    let found = problems(&text(&[filter], ""));
    assert!(found.contains("this library is not supported"), "{found}");
}
